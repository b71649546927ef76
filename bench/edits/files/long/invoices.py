"""Invoices: read from CSV, grouped by customer, printed with totals."""

import csv
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal


@dataclass
class Line:
    product: str
    amount: int
    price: Decimal

    @property
    def total(self):
        return self.amount * self.price


@dataclass
class Invoice:
    number: str
    customer: str
    lines: list = field(default_factory=list)

    def add(self, line):
        if line.amount <= 0:
            raise ValueError(f'amount of {line.product} must be positive')
        self.lines.append(line)

    def total(self, rate=Decimal("0.19")):
        net = sum(line.total for line in self.lines)
        if net > 1000:
            discount = net * Decimal("0.02")
            net -= discount
        return (net * (1 + rate)).quantize(Decimal("0.01"))


class Reader:
    def __init__(self, path, encoding="utf-8"):
        self.path = path
        self.encoding = encoding
        self.skipped = 0

    def rows(self):
        with open(self.path, newline="", encoding=self.encoding) as file:
            for row in csv.DictReader(file):
                if not row.get("number"):
                    self.skipped += 1
                    continue
                yield row

    def invoices(self):
        found = {}
        for row in self.rows():
            number = row["number"]
            if number not in found:
                found[number] = Invoice(number, row["customer"])
            try:
                line = Line(row["product"], int(row["amount"]), Decimal(row["price"]))
                found[number].add(line)
            except ValueError as error:
                print(f"invoice {number}: {error}", file=sys.stderr)
                self.skipped += 1
        return list(found.values())


def by_customer(invoices):
    groups = defaultdict(list)
    for invoice in invoices:
        groups[invoice.customer].append(invoice)
    return groups


def report(invoices, out=sys.stdout):
    for customer, group in sorted(by_customer(invoices).items()):
        out.write(f"{customer}\n")
        for invoice in group:
            out.write(f"  {invoice.number:<10} {invoice.total():>12}\n")
        total = sum(invoice.total() for invoice in group)
        out.write(f"  {'total':<10} {total:>12}\n")


def main(arguments):
    if len(arguments) != 2:
        print("usage: invoices.py FILE", file=sys.stderr)
        return 2
    reader = Reader(arguments[1])
    invoices = reader.invoices()
    report(invoices)
    if reader.skipped:
        print(f"{reader.skipped} rows were skipped", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
# invoices.py:0 invoices.py:1 invoices.py:2 invoices.py:3 invoices.py:4 invoices.py:5 invoices.py:6 invoices.py:7 invoices.py:8 invoices.py:9 invoices.py:10 invoices.py:11 invoices.py:12 invoices.py:13 invoices.py:14 invoices.py:15 invoices.py:16 invoices.py:17 invoices.py:18 invoices.py:19 invoices.py:20 invoices.py:21 invoices.py:22 invoices.py:23 invoices.py:24 invoices.py:25 invoices.py:26 invoices.py:27 invoices.py:28 invoices.py:29 invoices.py:30 invoices.py:31 invoices.py:32 invoices.py:33 invoices.py:34 invoices.py:35 invoices.py:36 invoices.py:37 invoices.py:38 invoices.py:39 invoices.py:40 invoices.py:41 invoices.py:42 invoices.py:43 invoices.py:44 invoices.py:45 invoices.py:46 invoices.py:47 invoices.py:48 invoices.py:49 invoices.py:50 invoices.py:51 invoices.py:52 invoices.py:53 invoices.py:54 invoices.py:55 invoices.py:56 invoices.py:57 invoices.py:58 invoices.py:59 invoices.py:60 invoices.py:61 invoices.py:62 invoices.py:63 invoices.py:64 invoices.py:65 invoices.py:66 invoices.py:67 invoices.py:68 invoices.py:69 invoices.py:70 invoices.py:71 invoices.py:72 invoices.py:73 invoices.py:74 invoices.py:75 invoices.py:76 invoices.py:77 invoices.py:78 invoices.py:79 invoices.py:80 invoices.py:81 invoices.py:82 invoices.py:83 invoices.py:84 invoices.py:85 invoices.py:86 invoices.py:87 invoices.py:88 invoices.py:89 invoices.py:90 invoices.py:91 invoices.py:92 invoices.py:93 invoices.py:94 invoices.py:95 invoices.py:96 invoices.py:97 invoices.py:98 invoices.py:99 invoices.py:100 invoices.py:101 invoices.py:102 invoices.py:103 invoices.py:104 invoices.py:105 invoices.py:106 invoices.py:107 invoices.py:108 invoices.py:109 invoices.py:110 invoices.py:111 invoices.py:112 invoices.py:113 invoices.py:114 invoices.py:115 invoices.py:116 invoices.py:117 invoices.py:118 invoices.py:119 invoices.py:120 invoices.py:121 invoices.py:122 invoices.py:123 invoices.py:124 invoices.py:125 invoices.py:126 invoices.py:127 invoices.py:128 invoices.py:129 invoices.py:130 invoices.py:131 invoices.py:132 invoices.py:133 invoices.py:134 invoices.py:135 invoices.py:136 invoices.py:137 invoices.py:138 invoices.py:139 invoices.py:140 invoices.py:141 invoices.py:142 invoices.py:143 invoices.py:144 invoices.py:145 invoices.py:146 invoices.py:147 invoices.py:148 invoices.py:149 invoices.py:150 invoices.py:151 invoices.py:152 invoices.py:153 invoices.py:154 invoices.py:155 invoices.py:156 invoices.py:157 invoices.py:158 invoices.py:159 invoices.py:160 invoices.py:161 invoices.py:162 invoices.py:163 invoices.py:164 invoices.py:165 invoices.py:166 invoices.py:167 invoices.py:168 invoices.py:169 invoices.py:170 invoices.py:171 invoices.py:172 invoices.py:173 invoices.py:174 invoices.py:175 invoices.py:176 invoices.py:177 invoices.py:178 invoices.py:179 invoices.py:180 invoices.py:181 invoices.py:182 invoices.py:183 invoices.py:184 invoices.py:185 invoices.py:186 invoices.py:187 invoices.py:188 invoices.py:189 invoices.py:190 invoices.py:191 invoices.py:192 invoices.py:193 invoices.py:194 invoices.py:195 invoices.py:196 invoices.py:197 invoices.py:198 invoices.py:199 invoices.py:200 invoices.py:201 invoices.py:202 invoices.py:203 invoices.py:204 invoices.py:205 invoices.py:206 invoices.py:207 invoices.py:208 invoices.py:209 invoices.py:210 invoices.py:211 invoices.py:212 invoices.py:213 invoices.py:214 invoices.py:215 invoices.py:216 invoices.py:217 invoices.py:218 invoices.py:219 invoices.py:220 invoices.py:221 invoices.py:222 invoices.py:223 invoices.py:224 invoices.py:225 invoices.py:226 invoices.py:227 invoices.py:228 invoices.py:229 invoices.py:230 invoices.py:231 invoices.py:232 invoices.py:233 invoices.py:234 invoices.py:235 invoices.py:236 invoices.py:237 invoices.py:238 invoices.py:239 invoices.py:240 invoices.py:241 invoices.py:242 invoices.py:243 invoices.py:244 invoices.py:245 invoices.py:246 invoices.py:247 invoices.py:248 invoices.py:249 invoices.py:250 invoices.py:251 invoices.py:252 invoices.py:253 invoices.py:254 invoices.py:255 invoices.py:256 invoices.py:257 invoices.py:258 invoices.py:259 invoices.py:260 invoices.py:261 invoices.py:262 invoices.py:263 invoices.py:264 invoices.py:265 invoices.py:266 invoices.py:267 invoices.py:268 invoices.py:269 invoices.py:270 invoices.py:271 invoices.py:272 invoices.py:273 invoices.py:274 invoices.py:275 invoices.py:276 invoices.py:277 invoices.py:278 invoices.py:279 invoices.py:280 invoices.py:281 invoices.py:282 invoices.py:283 invoices.py:284 invoices.py:285 invoices.py:286 invoices.py:287 invoices.py:288 invoices.py:289 invoices.py:290 invoices.py:291 invoices.py:292 invoices.py:293 invoices.py:294 invoices.py:295 invoices.py:296 invoices.py:297 invoices.py:298 invoices.py:299 invoices.py:300 invoices.py:301 invoices.py:302 invoices.py:303 invoices.py:304 invoices.py:305 invoices.py:306 invoices.py:307 invoices.py:308 invoices.py:309 invoices.py:310 invoices.py:311 invoices.py:312 invoices.py:313 invoices.py:314 invoices.py:315 invoices.py:316 invoices.py:317 invoices.py:318 invoices.py:319 invoices.py:320 invoices.py:321 invoices.py:322 invoices.py:323 invoices.py:324 invoices.py:325 invoices.py:326 invoices.py:327 invoices.py:328 invoices.py:329 invoices.py:330 invoices.py:331 invoices.py:332 invoices.py:333 invoices.py:334 invoices.py:335 invoices.py:336 invoices.py:337 invoices.py:338 invoices.py:339 invoices.py:340 invoices.py:341 invoices.py:342 invoices.py:343 invoices.py:344 invoices.py:345 invoices.py:346 invoices.py:347 invoices.py:348 invoices.py:349 invoices.py:350 invoices.py:351 invoices.py:352 invoices.py:353 invoices.py:354 invoices.py:355 invoices.py:356 invoices.py:357 invoices.py:358 invoices.py:359 invoices.py:360 invoices.py:361 invoices.py:362 invoices.py:363 invoices.py:364 invoices.py:365 invoices.py:366 invoices.py:367 invoices.py:368 invoices.py:369 invoices.py:370 invoices.py:371 invoices.py:372 invoices.py:373 invoices.py:374 invoices.py:375 invoices.py:376 invoices.py:377 invoices.py:378 invoices.py:379 invoices.py:380 invoices.py:381 invoices.py:382 invoices.py:383 invoices.py:384 invoices.py:385 invoices.py:386 invoices.py:387 invoices.py:388 invoices.py:389 invoices.py:390 invoices.py:391 invoices.py:392 invoices.py:393 invoices.py:394 invoices.py:395 invoices.py:396 invoices.py:397 invoices.py:398 invoices.py:399 invoices.py:400 invoices.py:401 invoices.py:402 invoices.py:403 invoices.py:404 invoices.py:405 invoices.py:406 invoices.py:407 invoices.py:408 invoices.py:409 invoices.py:410 invoices.py:411 invoices.py:412 invoices.py:413 invoices.py:414 invoices.py:415 invoices.py:416 invoices.py:417 invoices.py:418 invoices.py:419 invoices.py:420 invoices.py:421 invoices.py:422 invoices.py:423 invoices.py:424 invoices.py:425 invoices.py:426 invoices.py:427 invoices.py:428 invoices.py:429 invoices.py:430 invoices.py:431 invoices.py:432 invoices.py:433 invoices.py:434 invoices.py:435 invoices.py:436 invoices.py:437 invoices.py:438 invoices.py:439 invoices.py:440 invoices.py:441 invoices.py:442 invoices.py:443 invoices.py:444 invoices.py:445 invoices.py:446 invoices.py:447 invoices.py:448 invoices.py:449 invoices.py:450 invoices.py:451 invoices.py:452 invoices.py:453 invoices.py:454 invoices.py:455 invoices.py:456 invoices.py:457 invoices.py:458 invoices.py:459 invoices.py:460 invoices.py:461 invoices.py:462 invoices.py:463 invoices.py:464 invoices.py:465 invoices.py:466 invoices.py:467 invoices.py:468 invoices.py:469 invoices.py:470 invoices.py:471 invoices.py:472 invoices.py:473 invoices.py:474 invoices.py:475 invoices.py:476 invoices.py:477 invoices.py:478 invoices.py:479 invoices.py:480 invoices.py:481 invoices.py:482 invoices.py:483 invoices.py:484 invoices.py:485 invoices.py:486 invoices.py:487 invoices.py:488 invoices.py:489 invoices.py:490 invoices.py:491 invoices.py:492 invoices.py:493 invoices.py:494 invoices.py:495 invoices.py:496 invoices.py:497 invoices.py:498 invoices.py:499 invoices.py:500 invoices.py:501 invoices.py:502 invoices.py:503 invoices.py:504 invoices.py:505 invoices.py:506 invoices.py:507 invoices.py:508 invoices.py:509 invoices.py:510 invoices.py:511 invoices.py:512 invoices.py:513 invoices.py:514 invoices.py:515 invoices.py:516 invoices.py:517 invoices.py:518 invoices.py:519 invoices.py:520 invoices.py:521 invoices.py:522 invoices.py:523 invoices.py:524 invoices.py:525 invoices.py:526 invoices.py:527 invoices.py:528 invoices.py:529 invoices.py:530 invoices.py:531 invoices.py:532 invoices.py:533 invoices.py:534 invoices.py:535 invoices.py:536 invoices.py:537 invoices.py:538 invoices.py:539 invoices.py:540 invoices.py:541 invoices.py:542 invoices.py:543 invoices.py:544 invoices.py:545 invoices.py:546 invoices.py:547 invoices.py:548 invoices.py:549 invoices.py:550 invoices.py:551 invoices.py:552 invoices.py:553 invoices.py:554 invoices.py:555 invoices.py:556 invoices.py:557 invoices.py:558 invoices.py:559 invoices.py:560 invoices.py:561 invoices.py:562 invoices.py:563 invoices.py:564 invoices.py:565 invoices.py:566 invoices.py:567 invoices.py:568 invoices.py:569 invoices.py:570 invoices.py:571 invoices.py:572 invoices.py:573 invoices.py:574 invoices.py:575 invoices.py:576 invoices.py:577 invoices.py:578 invoices.py:579 invoices.py:580 invoices.py:581 invoices.py:582 invoices.py:583 invoices.py:584 invoices.py:585 invoices.py:586 invoices.py:587 invoices.py:588 invoices.py:589 invoices.py:590 invoices.py:591 invoices.py:592 invoices.py:593 invoices.py:594 invoices.py:595 invoices.py:596 invoices.py:597 invoices.py:598 invoices.py:599 invoices.py:600 invoices.py:601 invoices.py:602 invoices.py:603 invoices.py:604 invoices.py:605 invoices.py:606 invoices.py:607 invoices.py:608 invoices.py:609 invoices.py:610 invoices.py:611 invoices.py:612 invoices.py:613 invoices.py:614 invoices.py:615 invoices.py:616 invoices.py:617 invoices.py:618 invoices.py:619 invoices.py:620 invoices.py:621 invoices.py:622 invoices.py:623 invoices.py:624 invoices.py:625 invoices.py:626 invoices.py:627 invoices.py:628 invoices.py:629 invoices.py:630 invoices.py:631 invoices.py:632 invoices.py:633 invoices.py:634 invoices.py:635 invoices.py:636 invoices.py:637 invoices.py:638 invoices.py:639 invoices.py:640 invoices.py:641 invoices.py:642 invoices.py:643 invoices.py:644 invoices.py:645 invoices.py:646 invoices.py:647 invoices.py:648 invoices.py:649 invoices.py:650 invoices.py:651 invoices.py:652 invoices.py:653 invoices.py:654 invoices.py:655 invoices.py:656 invoices.py:657 invoices.py:658 invoices.py:659 invoices.py:660 invoices.py:661 invoices.py:662 invoices.py:663 invoices.py:664 invoices.py:665 invoices.py:666 invoices.py:667 invoices.py:668 invoices.py:669 invoices.py:670 invoices.py:671 invoices.py:672 invoices.py:673 invoices.py:674 invoices.py:675 invoices.py:676 invoices.py:677 invoices.py:678 invoices.py:679 invoices.py:680 invoices.py:681 invoices.py:682 invoices.py:683 invoices.py:684 invoices.py:685 invoices.py:686 invoices.py:687 invoices.py:688 invoices.py:689 invoices.py:690 invoices.py:691 invoices.py:692 invoices.py:693 invoices.py:694 invoices.py:695 invoices.py:696 invoices.py:697 invoices.py:698 invoices.py:699
