/* A ring of bytes between one writer and one reader. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING_MIN 16

struct ring {
	unsigned char *bytes;
	size_t size;
	size_t head;
	size_t tail;
	unsigned long dropped;
};

struct ring *ring_new(size_t size)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	if (size < RING_MIN)
		size = RING_MIN;
	ring->bytes = malloc(size);
	if (!ring->bytes) {
		free(ring);
		return NULL;
	}
	ring->size = size;
	return ring;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	free(ring->bytes);
	free(ring);
}

size_t ring_used(const struct ring *ring)
{
	if (ring->head >= ring->tail)
		return ring->head - ring->tail;
	return ring->size - ring->tail + ring->head;
}

static size_t room(const struct ring *ring)
{
	return ring->size - ring_used(ring) - 1;
}

int ring_write(struct ring *ring, const void *data, size_t count)
{
	const unsigned char *from = data;
	size_t first;

	if (count > room(ring)) {
		ring->dropped += count;
		return -ENOBUFS;
	}
	first = ring->size - ring->head;
	if (first > count)
		first = count;
	memcpy(ring->bytes + ring->head, from, first);
	memcpy(ring->bytes, from + first, count - first);
	ring->head = (ring->head + count) % ring->size;
	return 0;
}

size_t ring_read(struct ring *ring, void *data, size_t count)
{
	unsigned char *to = data;
	size_t used = ring_used(ring);
	size_t done = 0;

	if (count > used)
		count = used;
	while (done < count) {
		to[done] = ring->bytes[ring->tail];
		ring->tail = (ring->tail + 1) % ring->size;
		done++;
	}
	return done;
}

void ring_print(const struct ring *ring, FILE *out)
{
	fprintf(out, "ring: %zu of %zu bytes used", ring_used(ring), ring->size);
	if (ring->dropped > 0)
		fprintf(out, ", %lu dropped", ring->dropped);
	fputc('\n', out);
}
# ring.c:0 ring.c:1 ring.c:2 ring.c:3 ring.c:4 ring.c:5 ring.c:6 ring.c:7 ring.c:8 ring.c:9 ring.c:10 ring.c:11 ring.c:12 ring.c:13 ring.c:14 ring.c:15 ring.c:16 ring.c:17 ring.c:18 ring.c:19 ring.c:20 ring.c:21 ring.c:22 ring.c:23 ring.c:24 ring.c:25 ring.c:26 ring.c:27 ring.c:28 ring.c:29 ring.c:30 ring.c:31 ring.c:32 ring.c:33 ring.c:34 ring.c:35 ring.c:36 ring.c:37 ring.c:38 ring.c:39 ring.c:40 ring.c:41 ring.c:42 ring.c:43 ring.c:44 ring.c:45 ring.c:46 ring.c:47 ring.c:48 ring.c:49 ring.c:50 ring.c:51 ring.c:52 ring.c:53 ring.c:54 ring.c:55 ring.c:56 ring.c:57 ring.c:58 ring.c:59 ring.c:60 ring.c:61 ring.c:62 ring.c:63 ring.c:64 ring.c:65 ring.c:66 ring.c:67 ring.c:68 ring.c:69 ring.c:70 ring.c:71 ring.c:72 ring.c:73 ring.c:74 ring.c:75 ring.c:76 ring.c:77 ring.c:78 ring.c:79 ring.c:80 ring.c:81 ring.c:82 ring.c:83 ring.c:84 ring.c:85 ring.c:86 ring.c:87 ring.c:88 ring.c:89 ring.c:90 ring.c:91 ring.c:92 ring.c:93 ring.c:94 ring.c:95 ring.c:96 ring.c:97 ring.c:98 ring.c:99 ring.c:100 ring.c:101 ring.c:102 ring.c:103 ring.c:104 ring.c:105 ring.c:106 ring.c:107 ring.c:108 ring.c:109 ring.c:110 ring.c:111 ring.c:112 ring.c:113 ring.c:114 ring.c:115 ring.c:116 ring.c:117 ring.c:118 ring.c:119 ring.c:120 ring.c:121 ring.c:122 ring.c:123 ring.c:124 ring.c:125 ring.c:126 ring.c:127 ring.c:128 ring.c:129 ring.c:130 ring.c:131 ring.c:132 ring.c:133 ring.c:134 ring.c:135 ring.c:136 ring.c:137 ring.c:138 ring.c:139 ring.c:140 ring.c:141 ring.c:142 ring.c:143 ring.c:144 ring.c:145 ring.c:146 ring.c:147 ring.c:148 ring.c:149 ring.c:150 ring.c:151 ring.c:152 ring.c:153 ring.c:154 ring.c:155 ring.c:156 ring.c:157 ring.c:158 ring.c:159 ring.c:160 ring.c:161 ring.c:162 ring.c:163 ring.c:164 ring.c:165 ring.c:166 ring.c:167 ring.c:168 ring.c:169 ring.c:170 ring.c:171 ring.c:172 ring.c:173 ring.c:174 ring.c:175 ring.c:176 ring.c:177 ring.c:178 ring.c:179 ring.c:180 ring.c:181 ring.c:182 ring.c:183 ring.c:184 ring.c:185 ring.c:186 ring.c:187 ring.c:188 ring.c:189 ring.c:190 ring.c:191 ring.c:192 ring.c:193 ring.c:194 ring.c:195 ring.c:196 ring.c:197 ring.c:198 ring.c:199 ring.c:200 ring.c:201 ring.c:202 ring.c:203 ring.c:204 ring.c:205 ring.c:206 ring.c:207 ring.c:208 ring.c:209 ring.c:210 ring.c:211 ring.c:212 ring.c:213 ring.c:214 ring.c:215 ring.c:216 ring.c:217 ring.c:218 ring.c:219 ring.c:220 ring.c:221 ring.c:222 ring.c:223 ring.c:224 ring.c:225 ring.c:226 ring.c:227 ring.c:228 ring.c:229 ring.c:230 ring.c:231 ring.c:232 ring.c:233 ring.c:234 ring.c:235 ring.c:236 ring.c:237 ring.c:238 ring.c:239 ring.c:240 ring.c:241 ring.c:242 ring.c:243 ring.c:244 ring.c:245 ring.c:246 ring.c:247 ring.c:248 ring.c:249 ring.c:250 ring.c:251 ring.c:252 ring.c:253 ring.c:254 ring.c:255 ring.c:256 ring.c:257 ring.c:258 ring.c:259 ring.c:260 ring.c:261 ring.c:262 ring.c:263 ring.c:264 ring.c:265 ring.c:266 ring.c:267 ring.c:268 ring.c:269 ring.c:270 ring.c:271 ring.c:272 ring.c:273 ring.c:274 ring.c:275 ring.c:276 ring.c:277 ring.c:278 ring.c:279 ring.c:280 ring.c:281 ring.c:282 ring.c:283 ring.c:284 ring.c:285 ring.c:286 ring.c:287 ring.c:288 ring.c:289 ring.c:290 ring.c:291 ring.c:292 ring.c:293 ring.c:294 ring.c:295 ring.c:296 ring.c:297 ring.c:298 ring.c:299 ring.c:300 ring.c:301 ring.c:302 ring.c:303 ring.c:304 ring.c:305 ring.c:306 ring.c:307 ring.c:308 ring.c:309 ring.c:310 ring.c:311 ring.c:312 ring.c:313 ring.c:314 ring.c:315 ring.c:316 ring.c:317 ring.c:318 ring.c:319 ring.c:320 ring.c:321 ring.c:322 ring.c:323 ring.c:324 ring.c:325 ring.c:326 ring.c:327 ring.c:328 ring.c:329 ring.c:330 ring.c:331 ring.c:332 ring.c:333 ring.c:334 ring.c:335 ring.c:336 ring.c:337 ring.c:338 ring.c:339 ring.c:340 ring.c:341 ring.c:342 ring.c:343 ring.c:344 ring.c:345 ring.c:346 ring.c:347 ring.c:348 ring.c:349 ring.c:350 ring.c:351 ring.c:352 ring.c:353 ring.c:354 ring.c:355 ring.c:356 ring.c:357 ring.c:358 ring.c:359 ring.c:360 ring.c:361 ring.c:362 ring.c:363 ring.c:364 ring.c:365 ring.c:366 ring.c:367 ring.c:368 ring.c:369 ring.c:370 ring.c:371 ring.c:372 ring.c:373 ring.c:374 ring.c:375 ring.c:376 ring.c:377 ring.c:378 ring.c:379 ring.c:380 ring.c:381 ring.c:382 ring.c:383 ring.c:384 ring.c:385 ring.c:386 ring.c:387 ring.c:388 ring.c:389 ring.c:390 ring.c:391 ring.c:392 ring.c:393 ring.c:394 ring.c:395 ring.c:396 ring.c:397 ring.c:398 ring.c:399 ring.c:400 ring.c:401 ring.c:402 ring.c:403 ring.c:404 ring.c:405 ring.c:406 ring.c:407 ring.c:408 ring.c:409 ring.c:410 ring.c:411 ring.c:412 ring.c:413 ring.c:414 ring.c:415 ring.c:416 ring.c:417 ring.c:418 ring.c:419 ring.c:420 ring.c:421 ring.c:422 ring.c:423 ring.c:424 ring.c:425 ring.c:426 ring.c:427 ring.c:428 ring.c:429 ring.c:430 ring.c:431 ring.c:432 ring.c:433 ring.c:434 ring.c:435 ring.c:436 ring.c:437 ring.c:438 ring.c:439 ring.c:440 ring.c:441 ring.c:442 ring.c:443 ring.c:444 ring.c:445 ring.c:446 ring.c:447 ring.c:448 ring.c:449 ring.c:450 ring.c:451 ring.c:452 ring.c:453 ring.c:454 ring.c:455 ring.c:456 ring.c:457 ring.c:458 ring.c:459 ring.c:460 ring.c:461 ring.c:462 ring.c:463 ring.c:464 ring.c:465 ring.c:466 ring.c:467 ring.c:468 ring.c:469 ring.c:470 ring.c:471 ring.c:472 ring.c:473 ring.c:474 ring.c:475 ring.c:476 ring.c:477 ring.c:478 ring.c:479 ring.c:480 ring.c:481 ring.c:482 ring.c:483 ring.c:484 ring.c:485 ring.c:486 ring.c:487 ring.c:488 ring.c:489 ring.c:490 ring.c:491 ring.c:492 ring.c:493 ring.c:494 ring.c:495 ring.c:496 ring.c:497 ring.c:498 ring.c:499 ring.c:500 ring.c:501 ring.c:502 ring.c:503 ring.c:504 ring.c:505 ring.c:506 ring.c:507 ring.c:508 ring.c:509 ring.c:510 ring.c:511 ring.c:512 ring.c:513 ring.c:514 ring.c:515 ring.c:516 ring.c:517 ring.c:518 ring.c:519 ring.c:520 ring.c:521 ring.c:522 ring.c:523 ring.c:524 ring.c:525 ring.c:526 ring.c:527 ring.c:528 ring.c:529 ring.c:530 ring.c:531 ring.c:532 ring.c:533 ring.c:534 ring.c:535 ring.c:536 ring.c:537 ring.c:538 ring.c:539 ring.c:540 ring.c:541 ring.c:542 ring.c:543 ring.c:544 ring.c:545 ring.c:546 ring.c:547 ring.c:548 ring.c:549 ring.c:550 ring.c:551 ring.c:552 ring.c:553 ring.c:554 ring.c:555 ring.c:556 ring.c:557 ring.c:558 ring.c:559 ring.c:560 ring.c:561 ring.c:562 ring.c:563 ring.c:564 ring.c:565 ring.c:566 ring.c:567 ring.c:568 ring.c:569 ring.c:570 ring.c:571 ring.c:572 ring.c:573 ring.c:574 ring.c:575 ring.c:576 ring.c:577 ring.c:578 ring.c:579 ring.c:580 ring.c:581 ring.c:582 ring.c:583 ring.c:584 ring.c:585 ring.c:586 ring.c:587 ring.c:588 ring.c:589 ring.c:590 ring.c:591 ring.c:592 ring.c:593 ring.c:594 ring.c:595 ring.c:596 ring.c:597 ring.c:598 ring.c:599 ring.c:600 ring.c:601 ring.c:602 ring.c:603 ring.c:604 ring.c:605 ring.c:606 ring.c:607 ring.c:608 ring.c:609 ring.c:610 ring.c:611 ring.c:612 ring.c:613 ring.c:614 ring.c:615 ring.c:616 ring.c:617 ring.c:618 ring.c:619 ring.c:620 ring.c:621 ring.c:622 ring.c:623 ring.c:624 ring.c:625 ring.c:626 ring.c:627 ring.c:628 ring.c:629 ring.c:630 ring.c:631 ring.c:632 ring.c:633 ring.c:634 ring.c:635 ring.c:636 ring.c:637 ring.c:638 ring.c:639 ring.c:640 ring.c:641 ring.c:642 ring.c:643 ring.c:644 ring.c:645 ring.c:646 ring.c:647 ring.c:648 ring.c:649 ring.c:650 ring.c:651 ring.c:652 ring.c:653 ring.c:654 ring.c:655 ring.c:656 ring.c:657 ring.c:658 ring.c:659 ring.c:660 ring.c:661 ring.c:662 ring.c:663 ring.c:664 ring.c:665 ring.c:666 ring.c:667 ring.c:668 ring.c:669 ring.c:670 ring.c:671 ring.c:672 ring.c:673 ring.c:674 ring.c:675 ring.c:676 ring.c:677 ring.c:678 ring.c:679 ring.c:680 ring.c:681 ring.c:682 ring.c:683 ring.c:684 ring.c:685 ring.c:686 ring.c:687 ring.c:688 ring.c:689 ring.c:690 ring.c:691 ring.c:692 ring.c:693 ring.c:694 ring.c:695 ring.c:696 ring.c:697 ring.c:698 ring.c:699
