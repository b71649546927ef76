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
# recipe.rb:0 recipe.rb:1 recipe.rb:2 recipe.rb:3 recipe.rb:4 recipe.rb:5 recipe.rb:6 recipe.rb:7 recipe.rb:8 recipe.rb:9 recipe.rb:10 recipe.rb:11 recipe.rb:12 recipe.rb:13 recipe.rb:14 recipe.rb:15 recipe.rb:16 recipe.rb:17 recipe.rb:18 recipe.rb:19 recipe.rb:20 recipe.rb:21 recipe.rb:22 recipe.rb:23 recipe.rb:24 recipe.rb:25 recipe.rb:26 recipe.rb:27 recipe.rb:28 recipe.rb:29 recipe.rb:30 recipe.rb:31 recipe.rb:32 recipe.rb:33 recipe.rb:34 recipe.rb:35 recipe.rb:36 recipe.rb:37 recipe.rb:38 recipe.rb:39 recipe.rb:40 recipe.rb:41 recipe.rb:42 recipe.rb:43 recipe.rb:44 recipe.rb:45 recipe.rb:46 recipe.rb:47 recipe.rb:48 recipe.rb:49 recipe.rb:50 recipe.rb:51 recipe.rb:52 recipe.rb:53 recipe.rb:54 recipe.rb:55 recipe.rb:56 recipe.rb:57 recipe.rb:58 recipe.rb:59 recipe.rb:60 recipe.rb:61 recipe.rb:62 recipe.rb:63 recipe.rb:64 recipe.rb:65 recipe.rb:66 recipe.rb:67 recipe.rb:68 recipe.rb:69 recipe.rb:70 recipe.rb:71 recipe.rb:72 recipe.rb:73 recipe.rb:74 recipe.rb:75 recipe.rb:76 recipe.rb:77 recipe.rb:78 recipe.rb:79 recipe.rb:80 recipe.rb:81 recipe.rb:82 recipe.rb:83 recipe.rb:84 recipe.rb:85 recipe.rb:86 recipe.rb:87 recipe.rb:88 recipe.rb:89 recipe.rb:90 recipe.rb:91 recipe.rb:92 recipe.rb:93 recipe.rb:94 recipe.rb:95 recipe.rb:96 recipe.rb:97 recipe.rb:98 recipe.rb:99 recipe.rb:100 recipe.rb:101 recipe.rb:102 recipe.rb:103 recipe.rb:104 recipe.rb:105 recipe.rb:106 recipe.rb:107 recipe.rb:108 recipe.rb:109 recipe.rb:110 recipe.rb:111 recipe.rb:112 recipe.rb:113 recipe.rb:114 recipe.rb:115 recipe.rb:116 recipe.rb:117 recipe.rb:118 recipe.rb:119 recipe.rb:120 recipe.rb:121 recipe.rb:122 recipe.rb:123 recipe.rb:124 recipe.rb:125 recipe.rb:126 recipe.rb:127 recipe.rb:128 recipe.rb:129 recipe.rb:130 recipe.rb:131 recipe.rb:132 recipe.rb:133 recipe.rb:134 recipe.rb:135 recipe.rb:136 recipe.rb:137 recipe.rb:138 recipe.rb:139 recipe.rb:140 recipe.rb:141 recipe.rb:142 recipe.rb:143 recipe.rb:144 recipe.rb:145 recipe.rb:146 recipe.rb:147 recipe.rb:148 recipe.rb:149 recipe.rb:150 recipe.rb:151 recipe.rb:152 recipe.rb:153 recipe.rb:154 recipe.rb:155 recipe.rb:156 recipe.rb:157 recipe.rb:158 recipe.rb:159 recipe.rb:160 recipe.rb:161 recipe.rb:162 recipe.rb:163 recipe.rb:164 recipe.rb:165 recipe.rb:166 recipe.rb:167 recipe.rb:168 recipe.rb:169 recipe.rb:170 recipe.rb:171 recipe.rb:172 recipe.rb:173 recipe.rb:174 recipe.rb:175 recipe.rb:176 recipe.rb:177 recipe.rb:178 recipe.rb:179 recipe.rb:180 recipe.rb:181 recipe.rb:182 recipe.rb:183 recipe.rb:184 recipe.rb:185 recipe.rb:186 recipe.rb:187 recipe.rb:188 recipe.rb:189 recipe.rb:190 recipe.rb:191 recipe.rb:192 recipe.rb:193 recipe.rb:194 recipe.rb:195 recipe.rb:196 recipe.rb:197 recipe.rb:198 recipe.rb:199 recipe.rb:200 recipe.rb:201 recipe.rb:202 recipe.rb:203 recipe.rb:204 recipe.rb:205 recipe.rb:206 recipe.rb:207 recipe.rb:208 recipe.rb:209 recipe.rb:210 recipe.rb:211 recipe.rb:212 recipe.rb:213 recipe.rb:214 recipe.rb:215 recipe.rb:216 recipe.rb:217 recipe.rb:218 recipe.rb:219 recipe.rb:220 recipe.rb:221 recipe.rb:222 recipe.rb:223 recipe.rb:224 recipe.rb:225 recipe.rb:226 recipe.rb:227 recipe.rb:228 recipe.rb:229 recipe.rb:230 recipe.rb:231 recipe.rb:232 recipe.rb:233 recipe.rb:234 recipe.rb:235 recipe.rb:236 recipe.rb:237 recipe.rb:238 recipe.rb:239 recipe.rb:240 recipe.rb:241 recipe.rb:242 recipe.rb:243 recipe.rb:244 recipe.rb:245 recipe.rb:246 recipe.rb:247 recipe.rb:248 recipe.rb:249 recipe.rb:250 recipe.rb:251 recipe.rb:252 recipe.rb:253 recipe.rb:254 recipe.rb:255 recipe.rb:256 recipe.rb:257 recipe.rb:258 recipe.rb:259 recipe.rb:260 recipe.rb:261 recipe.rb:262 recipe.rb:263 recipe.rb:264 recipe.rb:265 recipe.rb:266 recipe.rb:267 recipe.rb:268 recipe.rb:269 recipe.rb:270 recipe.rb:271 recipe.rb:272 recipe.rb:273 recipe.rb:274 recipe.rb:275 recipe.rb:276 recipe.rb:277 recipe.rb:278 recipe.rb:279 recipe.rb:280 recipe.rb:281 recipe.rb:282 recipe.rb:283 recipe.rb:284 recipe.rb:285 recipe.rb:286 recipe.rb:287 recipe.rb:288 recipe.rb:289 recipe.rb:290 recipe.rb:291 recipe.rb:292 recipe.rb:293 recipe.rb:294 recipe.rb:295 recipe.rb:296 recipe.rb:297 recipe.rb:298 recipe.rb:299 recipe.rb:300 recipe.rb:301 recipe.rb:302 recipe.rb:303 recipe.rb:304 recipe.rb:305 recipe.rb:306 recipe.rb:307 recipe.rb:308 recipe.rb:309 recipe.rb:310 recipe.rb:311 recipe.rb:312 recipe.rb:313 recipe.rb:314 recipe.rb:315 recipe.rb:316 recipe.rb:317 recipe.rb:318 recipe.rb:319 recipe.rb:320 recipe.rb:321 recipe.rb:322 recipe.rb:323 recipe.rb:324 recipe.rb:325 recipe.rb:326 recipe.rb:327 recipe.rb:328 recipe.rb:329 recipe.rb:330 recipe.rb:331 recipe.rb:332 recipe.rb:333 recipe.rb:334 recipe.rb:335 recipe.rb:336 recipe.rb:337 recipe.rb:338 recipe.rb:339 recipe.rb:340 recipe.rb:341 recipe.rb:342 recipe.rb:343 recipe.rb:344 recipe.rb:345 recipe.rb:346 recipe.rb:347 recipe.rb:348 recipe.rb:349 recipe.rb:350 recipe.rb:351 recipe.rb:352 recipe.rb:353 recipe.rb:354 recipe.rb:355 recipe.rb:356 recipe.rb:357 recipe.rb:358 recipe.rb:359 recipe.rb:360 recipe.rb:361 recipe.rb:362 recipe.rb:363 recipe.rb:364 recipe.rb:365 recipe.rb:366 recipe.rb:367 recipe.rb:368 recipe.rb:369 recipe.rb:370 recipe.rb:371 recipe.rb:372 recipe.rb:373 recipe.rb:374 recipe.rb:375 recipe.rb:376 recipe.rb:377 recipe.rb:378 recipe.rb:379 recipe.rb:380 recipe.rb:381 recipe.rb:382 recipe.rb:383 recipe.rb:384 recipe.rb:385 recipe.rb:386 recipe.rb:387 recipe.rb:388 recipe.rb:389 recipe.rb:390 recipe.rb:391 recipe.rb:392 recipe.rb:393 recipe.rb:394 recipe.rb:395 recipe.rb:396 recipe.rb:397 recipe.rb:398 recipe.rb:399 recipe.rb:400 recipe.rb:401 recipe.rb:402 recipe.rb:403 recipe.rb:404 recipe.rb:405 recipe.rb:406 recipe.rb:407 recipe.rb:408 recipe.rb:409 recipe.rb:410 recipe.rb:411 recipe.rb:412 recipe.rb:413 recipe.rb:414 recipe.rb:415 recipe.rb:416 recipe.rb:417 recipe.rb:418 recipe.rb:419 recipe.rb:420 recipe.rb:421 recipe.rb:422 recipe.rb:423 recipe.rb:424 recipe.rb:425 recipe.rb:426 recipe.rb:427 recipe.rb:428 recipe.rb:429 recipe.rb:430 recipe.rb:431 recipe.rb:432 recipe.rb:433 recipe.rb:434 recipe.rb:435 recipe.rb:436 recipe.rb:437 recipe.rb:438 recipe.rb:439 recipe.rb:440 recipe.rb:441 recipe.rb:442 recipe.rb:443 recipe.rb:444 recipe.rb:445 recipe.rb:446 recipe.rb:447 recipe.rb:448 recipe.rb:449 recipe.rb:450 recipe.rb:451 recipe.rb:452 recipe.rb:453 recipe.rb:454 recipe.rb:455 recipe.rb:456 recipe.rb:457 recipe.rb:458 recipe.rb:459 recipe.rb:460 recipe.rb:461 recipe.rb:462 recipe.rb:463 recipe.rb:464 recipe.rb:465 recipe.rb:466 recipe.rb:467 recipe.rb:468 recipe.rb:469 recipe.rb:470 recipe.rb:471 recipe.rb:472 recipe.rb:473 recipe.rb:474 recipe.rb:475 recipe.rb:476 recipe.rb:477 recipe.rb:478 recipe.rb:479 recipe.rb:480 recipe.rb:481 recipe.rb:482 recipe.rb:483 recipe.rb:484 recipe.rb:485 recipe.rb:486 recipe.rb:487 recipe.rb:488 recipe.rb:489 recipe.rb:490 recipe.rb:491 recipe.rb:492 recipe.rb:493 recipe.rb:494 recipe.rb:495 recipe.rb:496 recipe.rb:497 recipe.rb:498 recipe.rb:499 recipe.rb:500 recipe.rb:501 recipe.rb:502 recipe.rb:503 recipe.rb:504 recipe.rb:505 recipe.rb:506 recipe.rb:507 recipe.rb:508 recipe.rb:509 recipe.rb:510 recipe.rb:511 recipe.rb:512 recipe.rb:513 recipe.rb:514 recipe.rb:515 recipe.rb:516 recipe.rb:517 recipe.rb:518 recipe.rb:519 recipe.rb:520 recipe.rb:521 recipe.rb:522 recipe.rb:523 recipe.rb:524 recipe.rb:525 recipe.rb:526 recipe.rb:527 recipe.rb:528 recipe.rb:529 recipe.rb:530 recipe.rb:531 recipe.rb:532 recipe.rb:533 recipe.rb:534 recipe.rb:535 recipe.rb:536 recipe.rb:537 recipe.rb:538 recipe.rb:539 recipe.rb:540 recipe.rb:541 recipe.rb:542 recipe.rb:543 recipe.rb:544 recipe.rb:545 recipe.rb:546 recipe.rb:547 recipe.rb:548 recipe.rb:549 recipe.rb:550 recipe.rb:551 recipe.rb:552 recipe.rb:553 recipe.rb:554 recipe.rb:555 recipe.rb:556 recipe.rb:557 recipe.rb:558 recipe.rb:559 recipe.rb:560 recipe.rb:561 recipe.rb:562 recipe.rb:563 recipe.rb:564 recipe.rb:565 recipe.rb:566 recipe.rb:567 recipe.rb:568 recipe.rb:569 recipe.rb:570 recipe.rb:571 recipe.rb:572 recipe.rb:573 recipe.rb:574 recipe.rb:575 recipe.rb:576 recipe.rb:577 recipe.rb:578 recipe.rb:579 recipe.rb:580 recipe.rb:581 recipe.rb:582 recipe.rb:583 recipe.rb:584 recipe.rb:585 recipe.rb:586 recipe.rb:587 recipe.rb:588 recipe.rb:589 recipe.rb:590 recipe.rb:591 recipe.rb:592 recipe.rb:593 recipe.rb:594 recipe.rb:595 recipe.rb:596 recipe.rb:597 recipe.rb:598 recipe.rb:599 recipe.rb:600 recipe.rb:601 recipe.rb:602 recipe.rb:603 recipe.rb:604 recipe.rb:605 recipe.rb:606 recipe.rb:607 recipe.rb:608 recipe.rb:609 recipe.rb:610 recipe.rb:611 recipe.rb:612 recipe.rb:613 recipe.rb:614 recipe.rb:615 recipe.rb:616 recipe.rb:617 recipe.rb:618 recipe.rb:619 recipe.rb:620 recipe.rb:621 recipe.rb:622 recipe.rb:623 recipe.rb:624 recipe.rb:625 recipe.rb:626 recipe.rb:627 recipe.rb:628 recipe.rb:629 recipe.rb:630 recipe.rb:631 recipe.rb:632 recipe.rb:633 recipe.rb:634 recipe.rb:635 recipe.rb:636 recipe.rb:637 recipe.rb:638 recipe.rb:639 recipe.rb:640 recipe.rb:641 recipe.rb:642 recipe.rb:643 recipe.rb:644 recipe.rb:645 recipe.rb:646 recipe.rb:647 recipe.rb:648 recipe.rb:649 recipe.rb:650 recipe.rb:651 recipe.rb:652 recipe.rb:653 recipe.rb:654 recipe.rb:655 recipe.rb:656 recipe.rb:657 recipe.rb:658 recipe.rb:659 recipe.rb:660 recipe.rb:661 recipe.rb:662 recipe.rb:663 recipe.rb:664 recipe.rb:665 recipe.rb:666 recipe.rb:667 recipe.rb:668 recipe.rb:669 recipe.rb:670 recipe.rb:671 recipe.rb:672 recipe.rb:673 recipe.rb:674 recipe.rb:675 recipe.rb:676 recipe.rb:677 recipe.rb:678 recipe.rb:679 recipe.rb:680 recipe.rb:681 recipe.rb:682 recipe.rb:683 recipe.rb:684 recipe.rb:685 recipe.rb:686 recipe.rb:687 recipe.rb:688 recipe.rb:689 recipe.rb:690 recipe.rb:691 recipe.rb:692 recipe.rb:693 recipe.rb:694 recipe.rb:695 recipe.rb:696 recipe.rb:697 recipe.rb:698 recipe.rb:699
