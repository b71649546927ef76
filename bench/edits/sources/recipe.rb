# frozen_string_literal: true

require 'json'
require 'set'

module Kitchen
  # A recipe with what it needs.
  class Recipe
    attr_reader :name, :needs, :steps

    def initialize(name, needs: {}, steps: [])
      raise ArgumentError, 'a recipe has a name' if name.to_s.strip.empty?

      @name = name
      @needs = needs
      @steps = steps
    end

    def scale(factor)
      scaled = needs.transform_values { |amount| (amount * factor).round(2) }
      Recipe.new(name, needs: scaled, steps: steps)
    end

    def missing(pantry)
      needs.each_with_object({}) do |(thing, amount), lack|
        have = pantry.fetch(thing, 0)
        lack[thing] = amount - have if have < amount
      end
    end

    def to_h
      { 'name' => name, 'needs' => needs, 'steps' => steps }
    end
  end

  # All of them, kept in a file.
  class Book
    def initialize(path)
      @path = path
      @recipes = {}
      load if File.exist?(path)
    end

    def add(recipe)
      if @recipes.key?(recipe.name)
        warn "replacing #{recipe.name}"
      end
      @recipes[recipe.name] = recipe
      self
    end

    def find(words)
      wanted = Set.new(words.map(&:downcase))
      @recipes.values.select do |recipe|
        things = recipe.needs.keys.map(&:downcase)
        wanted.subset?(Set.new(things))
      end
    end

    def save
      text = JSON.pretty_generate(@recipes.values.map(&:to_h))
      File.write(@path, text)
    end

    private

    def load
      JSON.parse(File.read(@path)).each do |entry|
        recipe = Recipe.new(entry['name'], needs: entry['needs'], steps: entry['steps'])
        @recipes[recipe.name] = recipe
      end
    rescue JSON::ParserError => e
      warn "cannot read #{@path}: #{e.message}"
    end
  end
end
