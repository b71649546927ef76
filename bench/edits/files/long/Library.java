package org.example.library;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Books, who has them, and until when. */
public final class Library {
    private static final int DAYS = 28;

    private final Map<String, Book> books = new HashMap<>();
    private final Map<String, Loan> loans = new HashMap<>();

    public record Book(String isbn, String title, String author, int year) {}

    public record Loan(Book book, String reader, LocalDate until) {
        boolean overdue(LocalDate today) {
            return until.isBefore(today);
        }
    }

    public static class UnknownBook extends RuntimeException {
        UnknownBook(String isbn) {
            super("there is no book " + isbn);
        }
    }

    public void add(Book book) {
        if (book.isbn().isBlank()) {
            throw new IllegalArgumentException("a book has a number");
        }
        books.put(book.isbn(), book);
    }

    public Loan lend(String isbn, String reader, LocalDate today) {
        Book book = books.get(isbn);
        if (book == null) {
            throw new UnknownBook(isbn);
        }
        Loan known = loans.get(isbn);
        if (known != null && !known.overdue(today)) {
            throw new IllegalStateException(book.title() + " is lent to " + known.reader());
        }
        Loan loan = new Loan(book, reader, today.plusDays(DAYS));
        loans.put(isbn, loan);
        return loan;
    }

    public boolean giveBack(String isbn) {
        return loans.remove(isbn) != null;
    }

    public Optional<Loan> loan(String isbn) {
        return Optional.ofNullable(loans.get(isbn));
    }

    public List<Loan> overdue(LocalDate today) {
        List<Loan> late = new ArrayList<>();
        for (Loan loan : loans.values()) {
            if (loan.overdue(today)) {
                late.add(loan);
            }
        }
        late.sort(Comparator.comparing(Loan::until));
        return late;
    }

    public List<Book> by(String author) {
        List<Book> found = new ArrayList<>();
        for (Book book : books.values()) {
            if (book.author().equalsIgnoreCase(author)) {
                found.add(book);
            }
        }
        found.sort(Comparator.comparingInt(Book::year).reversed());
        return found;
    }
}
# Library.java:0 Library.java:1 Library.java:2 Library.java:3 Library.java:4 Library.java:5 Library.java:6 Library.java:7 Library.java:8 Library.java:9 Library.java:10 Library.java:11 Library.java:12 Library.java:13 Library.java:14 Library.java:15 Library.java:16 Library.java:17 Library.java:18 Library.java:19 Library.java:20 Library.java:21 Library.java:22 Library.java:23 Library.java:24 Library.java:25 Library.java:26 Library.java:27 Library.java:28 Library.java:29 Library.java:30 Library.java:31 Library.java:32 Library.java:33 Library.java:34 Library.java:35 Library.java:36 Library.java:37 Library.java:38 Library.java:39 Library.java:40 Library.java:41 Library.java:42 Library.java:43 Library.java:44 Library.java:45 Library.java:46 Library.java:47 Library.java:48 Library.java:49 Library.java:50 Library.java:51 Library.java:52 Library.java:53 Library.java:54 Library.java:55 Library.java:56 Library.java:57 Library.java:58 Library.java:59 Library.java:60 Library.java:61 Library.java:62 Library.java:63 Library.java:64 Library.java:65 Library.java:66 Library.java:67 Library.java:68 Library.java:69 Library.java:70 Library.java:71 Library.java:72 Library.java:73 Library.java:74 Library.java:75 Library.java:76 Library.java:77 Library.java:78 Library.java:79 Library.java:80 Library.java:81 Library.java:82 Library.java:83 Library.java:84 Library.java:85 Library.java:86 Library.java:87 Library.java:88 Library.java:89 Library.java:90 Library.java:91 Library.java:92 Library.java:93 Library.java:94 Library.java:95 Library.java:96 Library.java:97 Library.java:98 Library.java:99 Library.java:100 Library.java:101 Library.java:102 Library.java:103 Library.java:104 Library.java:105 Library.java:106 Library.java:107 Library.java:108 Library.java:109 Library.java:110 Library.java:111 Library.java:112 Library.java:113 Library.java:114 Library.java:115 Library.java:116 Library.java:117 Library.java:118 Library.java:119 Library.java:120 Library.java:121 Library.java:122 Library.java:123 Library.java:124 Library.java:125 Library.java:126 Library.java:127 Library.java:128 Library.java:129 Library.java:130 Library.java:131 Library.java:132 Library.java:133 Library.java:134 Library.java:135 Library.java:136 Library.java:137 Library.java:138 Library.java:139 Library.java:140 Library.java:141 Library.java:142 Library.java:143 Library.java:144 Library.java:145 Library.java:146 Library.java:147 Library.java:148 Library.java:149 Library.java:150 Library.java:151 Library.java:152 Library.java:153 Library.java:154 Library.java:155 Library.java:156 Library.java:157 Library.java:158 Library.java:159 Library.java:160 Library.java:161 Library.java:162 Library.java:163 Library.java:164 Library.java:165 Library.java:166 Library.java:167 Library.java:168 Library.java:169 Library.java:170 Library.java:171 Library.java:172 Library.java:173 Library.java:174 Library.java:175 Library.java:176 Library.java:177 Library.java:178 Library.java:179 Library.java:180 Library.java:181 Library.java:182 Library.java:183 Library.java:184 Library.java:185 Library.java:186 Library.java:187 Library.java:188 Library.java:189 Library.java:190 Library.java:191 Library.java:192 Library.java:193 Library.java:194 Library.java:195 Library.java:196 Library.java:197 Library.java:198 Library.java:199 Library.java:200 Library.java:201 Library.java:202 Library.java:203 Library.java:204 Library.java:205 Library.java:206 Library.java:207 Library.java:208 Library.java:209 Library.java:210 Library.java:211 Library.java:212 Library.java:213 Library.java:214 Library.java:215 Library.java:216 Library.java:217 Library.java:218 Library.java:219 Library.java:220 Library.java:221 Library.java:222 Library.java:223 Library.java:224 Library.java:225 Library.java:226 Library.java:227 Library.java:228 Library.java:229 Library.java:230 Library.java:231 Library.java:232 Library.java:233 Library.java:234 Library.java:235 Library.java:236 Library.java:237 Library.java:238 Library.java:239 Library.java:240 Library.java:241 Library.java:242 Library.java:243 Library.java:244 Library.java:245 Library.java:246 Library.java:247 Library.java:248 Library.java:249 Library.java:250 Library.java:251 Library.java:252 Library.java:253 Library.java:254 Library.java:255 Library.java:256 Library.java:257 Library.java:258 Library.java:259 Library.java:260 Library.java:261 Library.java:262 Library.java:263 Library.java:264 Library.java:265 Library.java:266 Library.java:267 Library.java:268 Library.java:269 Library.java:270 Library.java:271 Library.java:272 Library.java:273 Library.java:274 Library.java:275 Library.java:276 Library.java:277 Library.java:278 Library.java:279 Library.java:280 Library.java:281 Library.java:282 Library.java:283 Library.java:284 Library.java:285 Library.java:286 Library.java:287 Library.java:288 Library.java:289 Library.java:290 Library.java:291 Library.java:292 Library.java:293 Library.java:294 Library.java:295 Library.java:296 Library.java:297 Library.java:298 Library.java:299 Library.java:300 Library.java:301 Library.java:302 Library.java:303 Library.java:304 Library.java:305 Library.java:306 Library.java:307 Library.java:308 Library.java:309 Library.java:310 Library.java:311 Library.java:312 Library.java:313 Library.java:314 Library.java:315 Library.java:316 Library.java:317 Library.java:318 Library.java:319 Library.java:320 Library.java:321 Library.java:322 Library.java:323 Library.java:324 Library.java:325 Library.java:326 Library.java:327 Library.java:328 Library.java:329 Library.java:330 Library.java:331 Library.java:332 Library.java:333 Library.java:334 Library.java:335 Library.java:336 Library.java:337 Library.java:338 Library.java:339 Library.java:340 Library.java:341 Library.java:342 Library.java:343 Library.java:344 Library.java:345 Library.java:346 Library.java:347 Library.java:348 Library.java:349 Library.java:350 Library.java:351 Library.java:352 Library.java:353 Library.java:354 Library.java:355 Library.java:356 Library.java:357 Library.java:358 Library.java:359 Library.java:360 Library.java:361 Library.java:362 Library.java:363 Library.java:364 Library.java:365 Library.java:366 Library.java:367 Library.java:368 Library.java:369 Library.java:370 Library.java:371 Library.java:372 Library.java:373 Library.java:374 Library.java:375 Library.java:376 Library.java:377 Library.java:378 Library.java:379 Library.java:380 Library.java:381 Library.java:382 Library.java:383 Library.java:384 Library.java:385 Library.java:386 Library.java:387 Library.java:388 Library.java:389 Library.java:390 Library.java:391 Library.java:392 Library.java:393 Library.java:394 Library.java:395 Library.java:396 Library.java:397 Library.java:398 Library.java:399 Library.java:400 Library.java:401 Library.java:402 Library.java:403 Library.java:404 Library.java:405 Library.java:406 Library.java:407 Library.java:408 Library.java:409 Library.java:410 Library.java:411 Library.java:412 Library.java:413 Library.java:414 Library.java:415 Library.java:416 Library.java:417 Library.java:418 Library.java:419 Library.java:420 Library.java:421 Library.java:422 Library.java:423 Library.java:424 Library.java:425 Library.java:426 Library.java:427 Library.java:428 Library.java:429 Library.java:430 Library.java:431 Library.java:432 Library.java:433 Library.java:434 Library.java:435 Library.java:436 Library.java:437 Library.java:438 Library.java:439 Library.java:440 Library.java:441 Library.java:442 Library.java:443 Library.java:444 Library.java:445 Library.java:446 Library.java:447 Library.java:448 Library.java:449 Library.java:450 Library.java:451 Library.java:452 Library.java:453 Library.java:454 Library.java:455 Library.java:456 Library.java:457 Library.java:458 Library.java:459 Library.java:460 Library.java:461 Library.java:462 Library.java:463 Library.java:464 Library.java:465 Library.java:466 Library.java:467 Library.java:468 Library.java:469 Library.java:470 Library.java:471 Library.java:472 Library.java:473 Library.java:474 Library.java:475 Library.java:476 Library.java:477 Library.java:478 Library.java:479 Library.java:480 Library.java:481 Library.java:482 Library.java:483 Library.java:484 Library.java:485 Library.java:486 Library.java:487 Library.java:488 Library.java:489 Library.java:490 Library.java:491 Library.java:492 Library.java:493 Library.java:494 Library.java:495 Library.java:496 Library.java:497 Library.java:498 Library.java:499 Library.java:500 Library.java:501 Library.java:502 Library.java:503 Library.java:504 Library.java:505 Library.java:506 Library.java:507 Library.java:508 Library.java:509 Library.java:510 Library.java:511 Library.java:512 Library.java:513 Library.java:514 Library.java:515 Library.java:516 Library.java:517 Library.java:518 Library.java:519 Library.java:520 Library.java:521 Library.java:522 Library.java:523 Library.java:524 Library.java:525 Library.java:526 Library.java:527 Library.java:528 Library.java:529 Library.java:530 Library.java:531 Library.java:532 Library.java:533 Library.java:534 Library.java:535 Library.java:536 Library.java:537 Library.java:538 Library.java:539 Library.java:540 Library.java:541 Library.java:542 Library.java:543 Library.java:544 Library.java:545 Library.java:546 Library.java:547 Library.java:548 Library.java:549 Library.java:550 Library.java:551 Library.java:552 Library.java:553 Library.java:554 Library.java:555 Library.java:556 Library.java:557 Library.java:558 Library.java:559 Library.java:560 Library.java:561 Library.java:562 Library.java:563 Library.java:564 Library.java:565 Library.java:566 Library.java:567 Library.java:568 Library.java:569 Library.java:570 Library.java:571 Library.java:572 Library.java:573 Library.java:574 Library.java:575 Library.java:576 Library.java:577 Library.java:578 Library.java:579 Library.java:580 Library.java:581 Library.java:582 Library.java:583 Library.java:584 Library.java:585 Library.java:586 Library.java:587 Library.java:588 Library.java:589 Library.java:590 Library.java:591 Library.java:592 Library.java:593 Library.java:594 Library.java:595 Library.java:596 Library.java:597 Library.java:598 Library.java:599 Library.java:600 Library.java:601 Library.java:602 Library.java:603 Library.java:604 Library.java:605 Library.java:606 Library.java:607 Library.java:608 Library.java:609 Library.java:610 Library.java:611 Library.java:612 Library.java:613 Library.java:614 Library.java:615 Library.java:616 Library.java:617 Library.java:618 Library.java:619 Library.java:620 Library.java:621 Library.java:622 Library.java:623 Library.java:624 Library.java:625 Library.java:626 Library.java:627 Library.java:628 Library.java:629 Library.java:630 Library.java:631 Library.java:632 Library.java:633 Library.java:634 Library.java:635 Library.java:636 Library.java:637 Library.java:638 Library.java:639 Library.java:640 Library.java:641 Library.java:642 Library.java:643 Library.java:644 Library.java:645 Library.java:646 Library.java:647 Library.java:648 Library.java:649 Library.java:650 Library.java:651 Library.java:652 Library.java:653 Library.java:654 Library.java:655 Library.java:656 Library.java:657 Library.java:658 Library.java:659 Library.java:660 Library.java:661 Library.java:662 Library.java:663 Library.java:664 Library.java:665 Library.java:666 Library.java:667 Library.java:668 Library.java:669 Library.java:670 Library.java:671 Library.java:672 Library.java:673 Library.java:674 Library.java:675 Library.java:676 Library.java:677 Library.java:678 Library.java:679 Library.java:680 Library.java:681 Library.java:682 Library.java:683 Library.java:684 Library.java:685 Library.java:686 Library.java:687 Library.java:688 Library.java:689 Library.java:690 Library.java:691 Library.java:692 Library.java:693 Library.java:694 Library.java:695 Library.java:696 Library.java:697 Library.java:698 Library.java:699
