/** Class names: each one that is used has a rule, each rule is used, and no two mean the same element by accident. */

import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { scopedName } from '../css-names';

const WEB = join(import.meta.dirname, '..');
const files = (folder: string, ending: RegExp) =>
  readdirSync(join(WEB, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name))
    .map((name) => join(WEB, folder, name));
const read = (path: string) => readFileSync(path, 'utf8');
const name = (path: string) => relative(WEB, path);
const all = (text: string, pattern: RegExp) =>
  new Set([...text.matchAll(pattern)].map((m) => m[1] as string));

/** The classes that a style sheet has rules for, without those that it only borrows from `global.css`. */
const classesOf = (css: string) =>
  all(css.replace(/\/\*[\s\S]*?\*\//g, '').replace(/:global\([^)]*\)/g, ''), /\.([a-z][\w-]*)/gi);

const MODULES = files('src', /\.module\.css$/);
const GLOBAL = classesOf(read(join(WEB, 'src/ui/global.css')));
const SOURCES = files('src', /\.tsx?$/).filter((path) => !path.endsWith('.gen.ts'));

/** What a source reads from the modules that it imports: path of the module, names. */
function uses(path: string): [string, Set<string>][] {
  const source = read(path);
  const imports = [...source.matchAll(/^import (\w+) from '(\.[^']*\.module\.css)';$/gm)];
  return imports.map(([, local, from]) => [
    join(dirname(path), from as string),
    all(source.replace(/^import .*;$/gm, ''), new RegExp(`\\b${local}\\.(\\w+)`, 'g')),
  ]);
}

/** Words of class names that are written out, not read from a module; `classes` has them first. */
function words(source: string): string[] {
  const plain = [...source.matchAll(/className="([^"]*)"/g)].map((m) => m[1] as string);
  const joined = [...source.matchAll(/classes\(\s*'([^']*)'/g)].map((m) => m[1] as string);
  return [...plain, ...joined].flatMap((text) => text.split(' '));
}

describe('modules', () => {
  test('no two classes get the same name', () => {
    const names = MODULES.flatMap((path) =>
      [...classesOf(read(path))].map((local) => scopedName(local, path)),
    );
    expect(names.length).toBeGreaterThan(100);
    expect(names.filter((one, n) => names.indexOf(one) !== n)).toEqual([]);
    expect(names).toContain('Question_why');
  });

  test.each(MODULES.map((path) => [name(path), path]))(
    '%s: what is used is there, and what is there is used',
    (_, path) => {
      const users = SOURCES.flatMap(uses).filter(([from]) => from === path);
      expect(new Set(users.flatMap(([, names]) => [...names]))).toEqual(classesOf(read(path)));
    },
  );

  test('a class is read by its name, so that these tests see it', () => {
    expect(SOURCES.filter((path) => /\b(styles|panel)\[/.test(read(path))).map(name)).toEqual([]);
  });
});

describe('global classes', () => {
  test('each word of a class name has a rule', () => {
    const unknown = SOURCES.flatMap((path) =>
      words(read(path))
        .filter((word) => !GLOBAL.has(word))
        .map((word) => `${name(path)}: ${word}`),
    );
    expect(unknown).toEqual([]);
  });

  test('each rule is used', () => {
    const source = SOURCES.map(read).join('\n');
    // Made from the kind of a token, or from an escape sequence.
    const made = (word: string) => /^(tok|sgr)-/.test(word);
    expect(
      [...GLOBAL].filter(
        (word) => !made(word) && !new RegExp(`['"\` ]${word}['"\` ]`).test(source),
      ),
    ).toEqual([]);
  });
});

test('tests select classes that exist', () => {
  const known = new Set(
    MODULES.flatMap((path) => [...classesOf(read(path))].map((local) => scopedName(local, path))),
  );
  const prefixes = MODULES.map((path) => basename(path, '.module.css')).join('|');
  const selected = [...files('e2e', /\.ts$/), ...files('test', /\.tsx?$/)].flatMap((path) => [
    ...all(read(path), new RegExp(`\\.((?:${prefixes})_\\w+)`, 'g')),
  ]);
  expect(selected.length).toBeGreaterThan(30);
  expect(selected.filter((one) => !known.has(one))).toEqual([]);
});
