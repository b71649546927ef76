<?php

declare(strict_types=1);

namespace Shop;

final class Basket
{
    /** @var array<string, int> */
    private array $items = [];
    private ?string $coupon = null;

    public function __construct(private readonly Prices $prices)
    {
    }

    public function add(string $article, int $count = 1): void
    {
        if ($count < 1) {
            throw new \InvalidArgumentException("count of $article must be positive");
        }
        $this->items[$article] = ($this->items[$article] ?? 0) + $count;
    }

    public function drop(string $article): bool
    {
        if (!isset($this->items[$article])) {
            return false;
        }
        unset($this->items[$article]);
        return true;
    }

    public function redeem(string $coupon): void
    {
        if ($this->coupon !== null) {
            throw new \LogicException('only one coupon for each basket');
        }
        $this->coupon = $coupon;
    }

    public function total(): int
    {
        $sum = 0;
        foreach ($this->items as $article => $count) {
            $sum += $this->prices->of($article) * $count;
        }
        if ($this->coupon === 'TENTH') {
            $sum = intdiv($sum * 9, 10);
        }
        return $sum;
    }

    public function isEmpty(): bool
    {
        return $this->items === [];
    }
}

final class Prices
{
    /** @param array<string, int> $cents */
    public function __construct(private array $cents)
    {
    }

    public function of(string $article): int
    {
        if (!array_key_exists($article, $this->cents)) {
            throw new \OutOfBoundsException("there is no price for $article");
        }
        return $this->cents[$article];
    }

    public function raise(float $percent): self
    {
        $raised = [];
        foreach ($this->cents as $article => $price) {
            $raised[$article] = (int) round($price * (1 + $percent / 100));
        }
        return new self($raised);
    }
}
# shop.php:0 shop.php:1 shop.php:2 shop.php:3 shop.php:4 shop.php:5 shop.php:6 shop.php:7 shop.php:8 shop.php:9 shop.php:10 shop.php:11 shop.php:12 shop.php:13 shop.php:14 shop.php:15 shop.php:16 shop.php:17 shop.php:18 shop.php:19 shop.php:20 shop.php:21 shop.php:22 shop.php:23 shop.php:24 shop.php:25 shop.php:26 shop.php:27 shop.php:28 shop.php:29 shop.php:30 shop.php:31 shop.php:32 shop.php:33 shop.php:34 shop.php:35 shop.php:36 shop.php:37 shop.php:38 shop.php:39 shop.php:40 shop.php:41 shop.php:42 shop.php:43 shop.php:44 shop.php:45 shop.php:46 shop.php:47 shop.php:48 shop.php:49 shop.php:50 shop.php:51 shop.php:52 shop.php:53 shop.php:54 shop.php:55 shop.php:56 shop.php:57 shop.php:58 shop.php:59 shop.php:60 shop.php:61 shop.php:62 shop.php:63 shop.php:64 shop.php:65 shop.php:66 shop.php:67 shop.php:68 shop.php:69 shop.php:70 shop.php:71 shop.php:72 shop.php:73 shop.php:74 shop.php:75 shop.php:76 shop.php:77 shop.php:78 shop.php:79 shop.php:80 shop.php:81 shop.php:82 shop.php:83 shop.php:84 shop.php:85 shop.php:86 shop.php:87 shop.php:88 shop.php:89 shop.php:90 shop.php:91 shop.php:92 shop.php:93 shop.php:94 shop.php:95 shop.php:96 shop.php:97 shop.php:98 shop.php:99 shop.php:100 shop.php:101 shop.php:102 shop.php:103 shop.php:104 shop.php:105 shop.php:106 shop.php:107 shop.php:108 shop.php:109 shop.php:110 shop.php:111 shop.php:112 shop.php:113 shop.php:114 shop.php:115 shop.php:116 shop.php:117 shop.php:118 shop.php:119 shop.php:120 shop.php:121 shop.php:122 shop.php:123 shop.php:124 shop.php:125 shop.php:126 shop.php:127 shop.php:128 shop.php:129 shop.php:130 shop.php:131 shop.php:132 shop.php:133 shop.php:134 shop.php:135 shop.php:136 shop.php:137 shop.php:138 shop.php:139 shop.php:140 shop.php:141 shop.php:142 shop.php:143 shop.php:144 shop.php:145 shop.php:146 shop.php:147 shop.php:148 shop.php:149 shop.php:150 shop.php:151 shop.php:152 shop.php:153 shop.php:154 shop.php:155 shop.php:156 shop.php:157 shop.php:158 shop.php:159 shop.php:160 shop.php:161 shop.php:162 shop.php:163 shop.php:164 shop.php:165 shop.php:166 shop.php:167 shop.php:168 shop.php:169 shop.php:170 shop.php:171 shop.php:172 shop.php:173 shop.php:174 shop.php:175 shop.php:176 shop.php:177 shop.php:178 shop.php:179 shop.php:180 shop.php:181 shop.php:182 shop.php:183 shop.php:184 shop.php:185 shop.php:186 shop.php:187 shop.php:188 shop.php:189 shop.php:190 shop.php:191 shop.php:192 shop.php:193 shop.php:194 shop.php:195 shop.php:196 shop.php:197 shop.php:198 shop.php:199 shop.php:200 shop.php:201 shop.php:202 shop.php:203 shop.php:204 shop.php:205 shop.php:206 shop.php:207 shop.php:208 shop.php:209 shop.php:210 shop.php:211 shop.php:212 shop.php:213 shop.php:214 shop.php:215 shop.php:216 shop.php:217 shop.php:218 shop.php:219 shop.php:220 shop.php:221 shop.php:222 shop.php:223 shop.php:224 shop.php:225 shop.php:226 shop.php:227 shop.php:228 shop.php:229 shop.php:230 shop.php:231 shop.php:232 shop.php:233 shop.php:234 shop.php:235 shop.php:236 shop.php:237 shop.php:238 shop.php:239 shop.php:240 shop.php:241 shop.php:242 shop.php:243 shop.php:244 shop.php:245 shop.php:246 shop.php:247 shop.php:248 shop.php:249 shop.php:250 shop.php:251 shop.php:252 shop.php:253 shop.php:254 shop.php:255 shop.php:256 shop.php:257 shop.php:258 shop.php:259 shop.php:260 shop.php:261 shop.php:262 shop.php:263 shop.php:264 shop.php:265 shop.php:266 shop.php:267 shop.php:268 shop.php:269 shop.php:270 shop.php:271 shop.php:272 shop.php:273 shop.php:274 shop.php:275 shop.php:276 shop.php:277 shop.php:278 shop.php:279 shop.php:280 shop.php:281 shop.php:282 shop.php:283 shop.php:284 shop.php:285 shop.php:286 shop.php:287 shop.php:288 shop.php:289 shop.php:290 shop.php:291 shop.php:292 shop.php:293 shop.php:294 shop.php:295 shop.php:296 shop.php:297 shop.php:298 shop.php:299 shop.php:300 shop.php:301 shop.php:302 shop.php:303 shop.php:304 shop.php:305 shop.php:306 shop.php:307 shop.php:308 shop.php:309 shop.php:310 shop.php:311 shop.php:312 shop.php:313 shop.php:314 shop.php:315 shop.php:316 shop.php:317 shop.php:318 shop.php:319 shop.php:320 shop.php:321 shop.php:322 shop.php:323 shop.php:324 shop.php:325 shop.php:326 shop.php:327 shop.php:328 shop.php:329 shop.php:330 shop.php:331 shop.php:332 shop.php:333 shop.php:334 shop.php:335 shop.php:336 shop.php:337 shop.php:338 shop.php:339 shop.php:340 shop.php:341 shop.php:342 shop.php:343 shop.php:344 shop.php:345 shop.php:346 shop.php:347 shop.php:348 shop.php:349 shop.php:350 shop.php:351 shop.php:352 shop.php:353 shop.php:354 shop.php:355 shop.php:356 shop.php:357 shop.php:358 shop.php:359 shop.php:360 shop.php:361 shop.php:362 shop.php:363 shop.php:364 shop.php:365 shop.php:366 shop.php:367 shop.php:368 shop.php:369 shop.php:370 shop.php:371 shop.php:372 shop.php:373 shop.php:374 shop.php:375 shop.php:376 shop.php:377 shop.php:378 shop.php:379 shop.php:380 shop.php:381 shop.php:382 shop.php:383 shop.php:384 shop.php:385 shop.php:386 shop.php:387 shop.php:388 shop.php:389 shop.php:390 shop.php:391 shop.php:392 shop.php:393 shop.php:394 shop.php:395 shop.php:396 shop.php:397 shop.php:398 shop.php:399 shop.php:400 shop.php:401 shop.php:402 shop.php:403 shop.php:404 shop.php:405 shop.php:406 shop.php:407 shop.php:408 shop.php:409 shop.php:410 shop.php:411 shop.php:412 shop.php:413 shop.php:414 shop.php:415 shop.php:416 shop.php:417 shop.php:418 shop.php:419 shop.php:420 shop.php:421 shop.php:422 shop.php:423 shop.php:424 shop.php:425 shop.php:426 shop.php:427 shop.php:428 shop.php:429 shop.php:430 shop.php:431 shop.php:432 shop.php:433 shop.php:434 shop.php:435 shop.php:436 shop.php:437 shop.php:438 shop.php:439 shop.php:440 shop.php:441 shop.php:442 shop.php:443 shop.php:444 shop.php:445 shop.php:446 shop.php:447 shop.php:448 shop.php:449 shop.php:450 shop.php:451 shop.php:452 shop.php:453 shop.php:454 shop.php:455 shop.php:456 shop.php:457 shop.php:458 shop.php:459 shop.php:460 shop.php:461 shop.php:462 shop.php:463 shop.php:464 shop.php:465 shop.php:466 shop.php:467 shop.php:468 shop.php:469 shop.php:470 shop.php:471 shop.php:472 shop.php:473 shop.php:474 shop.php:475 shop.php:476 shop.php:477 shop.php:478 shop.php:479 shop.php:480 shop.php:481 shop.php:482 shop.php:483 shop.php:484 shop.php:485 shop.php:486 shop.php:487 shop.php:488 shop.php:489 shop.php:490 shop.php:491 shop.php:492 shop.php:493 shop.php:494 shop.php:495 shop.php:496 shop.php:497 shop.php:498 shop.php:499 shop.php:500 shop.php:501 shop.php:502 shop.php:503 shop.php:504 shop.php:505 shop.php:506 shop.php:507 shop.php:508 shop.php:509 shop.php:510 shop.php:511 shop.php:512 shop.php:513 shop.php:514 shop.php:515 shop.php:516 shop.php:517 shop.php:518 shop.php:519 shop.php:520 shop.php:521 shop.php:522 shop.php:523 shop.php:524 shop.php:525 shop.php:526 shop.php:527 shop.php:528 shop.php:529 shop.php:530 shop.php:531 shop.php:532 shop.php:533 shop.php:534 shop.php:535 shop.php:536 shop.php:537 shop.php:538 shop.php:539 shop.php:540 shop.php:541 shop.php:542 shop.php:543 shop.php:544 shop.php:545 shop.php:546 shop.php:547 shop.php:548 shop.php:549 shop.php:550 shop.php:551 shop.php:552 shop.php:553 shop.php:554 shop.php:555 shop.php:556 shop.php:557 shop.php:558 shop.php:559 shop.php:560 shop.php:561 shop.php:562 shop.php:563 shop.php:564 shop.php:565 shop.php:566 shop.php:567 shop.php:568 shop.php:569 shop.php:570 shop.php:571 shop.php:572 shop.php:573 shop.php:574 shop.php:575 shop.php:576 shop.php:577 shop.php:578 shop.php:579 shop.php:580 shop.php:581 shop.php:582 shop.php:583 shop.php:584 shop.php:585 shop.php:586 shop.php:587 shop.php:588 shop.php:589 shop.php:590 shop.php:591 shop.php:592 shop.php:593 shop.php:594 shop.php:595 shop.php:596 shop.php:597 shop.php:598 shop.php:599 shop.php:600 shop.php:601 shop.php:602 shop.php:603 shop.php:604 shop.php:605 shop.php:606 shop.php:607 shop.php:608 shop.php:609 shop.php:610 shop.php:611 shop.php:612 shop.php:613 shop.php:614 shop.php:615 shop.php:616 shop.php:617 shop.php:618 shop.php:619 shop.php:620 shop.php:621 shop.php:622 shop.php:623 shop.php:624 shop.php:625 shop.php:626 shop.php:627 shop.php:628 shop.php:629 shop.php:630 shop.php:631 shop.php:632 shop.php:633 shop.php:634 shop.php:635 shop.php:636 shop.php:637 shop.php:638 shop.php:639 shop.php:640 shop.php:641 shop.php:642 shop.php:643 shop.php:644 shop.php:645 shop.php:646 shop.php:647 shop.php:648 shop.php:649 shop.php:650 shop.php:651 shop.php:652 shop.php:653 shop.php:654 shop.php:655 shop.php:656 shop.php:657 shop.php:658 shop.php:659 shop.php:660 shop.php:661 shop.php:662 shop.php:663 shop.php:664 shop.php:665 shop.php:666 shop.php:667 shop.php:668 shop.php:669 shop.php:670 shop.php:671 shop.php:672 shop.php:673 shop.php:674 shop.php:675 shop.php:676 shop.php:677 shop.php:678 shop.php:679 shop.php:680 shop.php:681 shop.php:682 shop.php:683 shop.php:684 shop.php:685 shop.php:686 shop.php:687 shop.php:688 shop.php:689 shop.php:690 shop.php:691 shop.php:692 shop.php:693 shop.php:694 shop.php:695 shop.php:696 shop.php:697 shop.php:698 shop.php:699
