// Package queue runs jobs on a fixed number of workers.
package queue

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"
)

// ErrClosed is returned when a job comes after the end.
var ErrClosed = errors.New("queue: closed")

// Job is one piece of work.
type Job struct {
	Name    string
	Run     func(ctx context.Context) error
	Retries int
}

// Queue holds jobs until a worker takes them.
type Queue struct {
	jobs    chan Job
	wait    sync.WaitGroup
	mutex   sync.Mutex
	closed  bool
	failed  map[string]error
	timeout time.Duration
}

// New starts the workers.
func New(workers, size int, timeout time.Duration) *Queue {
	q := &Queue{
		jobs:    make(chan Job, size),
		failed:  make(map[string]error),
		timeout: timeout,
	}
	for i := 0; i < workers; i++ {
		q.wait.Add(1)
		go q.work(i)
	}
	return q
}

// Add puts a job at the end.
func (q *Queue) Add(job Job) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.closed {
		return ErrClosed
	}
	select {
	case q.jobs <- job:
		return nil
	default:
		return fmt.Errorf("queue: full, %q was not taken", job.Name)
	}
}

func (q *Queue) work(number int) {
	defer q.wait.Done()
	for job := range q.jobs {
		if err := q.try(job); err != nil {
			log.Printf("worker %d: %s: %v", number, job.Name, err)
			q.mutex.Lock()
			q.failed[job.Name] = err
			q.mutex.Unlock()
		}
	}
}

func (q *Queue) try(job Job) error {
	var err error
	for attempt := 0; attempt <= job.Retries; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
		err = job.Run(ctx)
		cancel()
		if err == nil {
			return nil
		}
		time.Sleep(time.Duration(attempt) * 10 * time.Millisecond)
	}
	return fmt.Errorf("after %d tries: %w", job.Retries+1, err)
}

// Close waits for what is left.
func (q *Queue) Close() map[string]error {
	q.mutex.Lock()
	q.closed = true
	q.mutex.Unlock()
	close(q.jobs)
	q.wait.Wait()
	return q.failed
}
# queue.go:0 queue.go:1 queue.go:2 queue.go:3 queue.go:4 queue.go:5 queue.go:6 queue.go:7 queue.go:8 queue.go:9 queue.go:10 queue.go:11 queue.go:12 queue.go:13 queue.go:14 queue.go:15 queue.go:16 queue.go:17 queue.go:18 queue.go:19 queue.go:20 queue.go:21 queue.go:22 queue.go:23 queue.go:24 queue.go:25 queue.go:26 queue.go:27 queue.go:28 queue.go:29 queue.go:30 queue.go:31 queue.go:32 queue.go:33 queue.go:34 queue.go:35 queue.go:36 queue.go:37 queue.go:38 queue.go:39 queue.go:40 queue.go:41 queue.go:42 queue.go:43 queue.go:44 queue.go:45 queue.go:46 queue.go:47 queue.go:48 queue.go:49 queue.go:50 queue.go:51 queue.go:52 queue.go:53 queue.go:54 queue.go:55 queue.go:56 queue.go:57 queue.go:58 queue.go:59 queue.go:60 queue.go:61 queue.go:62 queue.go:63 queue.go:64 queue.go:65 queue.go:66 queue.go:67 queue.go:68 queue.go:69 queue.go:70 queue.go:71 queue.go:72 queue.go:73 queue.go:74 queue.go:75 queue.go:76 queue.go:77 queue.go:78 queue.go:79 queue.go:80 queue.go:81 queue.go:82 queue.go:83 queue.go:84 queue.go:85 queue.go:86 queue.go:87 queue.go:88 queue.go:89 queue.go:90 queue.go:91 queue.go:92 queue.go:93 queue.go:94 queue.go:95 queue.go:96 queue.go:97 queue.go:98 queue.go:99 queue.go:100 queue.go:101 queue.go:102 queue.go:103 queue.go:104 queue.go:105 queue.go:106 queue.go:107 queue.go:108 queue.go:109 queue.go:110 queue.go:111 queue.go:112 queue.go:113 queue.go:114 queue.go:115 queue.go:116 queue.go:117 queue.go:118 queue.go:119 queue.go:120 queue.go:121 queue.go:122 queue.go:123 queue.go:124 queue.go:125 queue.go:126 queue.go:127 queue.go:128 queue.go:129 queue.go:130 queue.go:131 queue.go:132 queue.go:133 queue.go:134 queue.go:135 queue.go:136 queue.go:137 queue.go:138 queue.go:139 queue.go:140 queue.go:141 queue.go:142 queue.go:143 queue.go:144 queue.go:145 queue.go:146 queue.go:147 queue.go:148 queue.go:149 queue.go:150 queue.go:151 queue.go:152 queue.go:153 queue.go:154 queue.go:155 queue.go:156 queue.go:157 queue.go:158 queue.go:159 queue.go:160 queue.go:161 queue.go:162 queue.go:163 queue.go:164 queue.go:165 queue.go:166 queue.go:167 queue.go:168 queue.go:169 queue.go:170 queue.go:171 queue.go:172 queue.go:173 queue.go:174 queue.go:175 queue.go:176 queue.go:177 queue.go:178 queue.go:179 queue.go:180 queue.go:181 queue.go:182 queue.go:183 queue.go:184 queue.go:185 queue.go:186 queue.go:187 queue.go:188 queue.go:189 queue.go:190 queue.go:191 queue.go:192 queue.go:193 queue.go:194 queue.go:195 queue.go:196 queue.go:197 queue.go:198 queue.go:199 queue.go:200 queue.go:201 queue.go:202 queue.go:203 queue.go:204 queue.go:205 queue.go:206 queue.go:207 queue.go:208 queue.go:209 queue.go:210 queue.go:211 queue.go:212 queue.go:213 queue.go:214 queue.go:215 queue.go:216 queue.go:217 queue.go:218 queue.go:219 queue.go:220 queue.go:221 queue.go:222 queue.go:223 queue.go:224 queue.go:225 queue.go:226 queue.go:227 queue.go:228 queue.go:229 queue.go:230 queue.go:231 queue.go:232 queue.go:233 queue.go:234 queue.go:235 queue.go:236 queue.go:237 queue.go:238 queue.go:239 queue.go:240 queue.go:241 queue.go:242 queue.go:243 queue.go:244 queue.go:245 queue.go:246 queue.go:247 queue.go:248 queue.go:249 queue.go:250 queue.go:251 queue.go:252 queue.go:253 queue.go:254 queue.go:255 queue.go:256 queue.go:257 queue.go:258 queue.go:259 queue.go:260 queue.go:261 queue.go:262 queue.go:263 queue.go:264 queue.go:265 queue.go:266 queue.go:267 queue.go:268 queue.go:269 queue.go:270 queue.go:271 queue.go:272 queue.go:273 queue.go:274 queue.go:275 queue.go:276 queue.go:277 queue.go:278 queue.go:279 queue.go:280 queue.go:281 queue.go:282 queue.go:283 queue.go:284 queue.go:285 queue.go:286 queue.go:287 queue.go:288 queue.go:289 queue.go:290 queue.go:291 queue.go:292 queue.go:293 queue.go:294 queue.go:295 queue.go:296 queue.go:297 queue.go:298 queue.go:299 queue.go:300 queue.go:301 queue.go:302 queue.go:303 queue.go:304 queue.go:305 queue.go:306 queue.go:307 queue.go:308 queue.go:309 queue.go:310 queue.go:311 queue.go:312 queue.go:313 queue.go:314 queue.go:315 queue.go:316 queue.go:317 queue.go:318 queue.go:319 queue.go:320 queue.go:321 queue.go:322 queue.go:323 queue.go:324 queue.go:325 queue.go:326 queue.go:327 queue.go:328 queue.go:329 queue.go:330 queue.go:331 queue.go:332 queue.go:333 queue.go:334 queue.go:335 queue.go:336 queue.go:337 queue.go:338 queue.go:339 queue.go:340 queue.go:341 queue.go:342 queue.go:343 queue.go:344 queue.go:345 queue.go:346 queue.go:347 queue.go:348 queue.go:349 queue.go:350 queue.go:351 queue.go:352 queue.go:353 queue.go:354 queue.go:355 queue.go:356 queue.go:357 queue.go:358 queue.go:359 queue.go:360 queue.go:361 queue.go:362 queue.go:363 queue.go:364 queue.go:365 queue.go:366 queue.go:367 queue.go:368 queue.go:369 queue.go:370 queue.go:371 queue.go:372 queue.go:373 queue.go:374 queue.go:375 queue.go:376 queue.go:377 queue.go:378 queue.go:379 queue.go:380 queue.go:381 queue.go:382 queue.go:383 queue.go:384 queue.go:385 queue.go:386 queue.go:387 queue.go:388 queue.go:389 queue.go:390 queue.go:391 queue.go:392 queue.go:393 queue.go:394 queue.go:395 queue.go:396 queue.go:397 queue.go:398 queue.go:399 queue.go:400 queue.go:401 queue.go:402 queue.go:403 queue.go:404 queue.go:405 queue.go:406 queue.go:407 queue.go:408 queue.go:409 queue.go:410 queue.go:411 queue.go:412 queue.go:413 queue.go:414 queue.go:415 queue.go:416 queue.go:417 queue.go:418 queue.go:419 queue.go:420 queue.go:421 queue.go:422 queue.go:423 queue.go:424 queue.go:425 queue.go:426 queue.go:427 queue.go:428 queue.go:429 queue.go:430 queue.go:431 queue.go:432 queue.go:433 queue.go:434 queue.go:435 queue.go:436 queue.go:437 queue.go:438 queue.go:439 queue.go:440 queue.go:441 queue.go:442 queue.go:443 queue.go:444 queue.go:445 queue.go:446 queue.go:447 queue.go:448 queue.go:449 queue.go:450 queue.go:451 queue.go:452 queue.go:453 queue.go:454 queue.go:455 queue.go:456 queue.go:457 queue.go:458 queue.go:459 queue.go:460 queue.go:461 queue.go:462 queue.go:463 queue.go:464 queue.go:465 queue.go:466 queue.go:467 queue.go:468 queue.go:469 queue.go:470 queue.go:471 queue.go:472 queue.go:473 queue.go:474 queue.go:475 queue.go:476 queue.go:477 queue.go:478 queue.go:479 queue.go:480 queue.go:481 queue.go:482 queue.go:483 queue.go:484 queue.go:485 queue.go:486 queue.go:487 queue.go:488 queue.go:489 queue.go:490 queue.go:491 queue.go:492 queue.go:493 queue.go:494 queue.go:495 queue.go:496 queue.go:497 queue.go:498 queue.go:499 queue.go:500 queue.go:501 queue.go:502 queue.go:503 queue.go:504 queue.go:505 queue.go:506 queue.go:507 queue.go:508 queue.go:509 queue.go:510 queue.go:511 queue.go:512 queue.go:513 queue.go:514 queue.go:515 queue.go:516 queue.go:517 queue.go:518 queue.go:519 queue.go:520 queue.go:521 queue.go:522 queue.go:523 queue.go:524 queue.go:525 queue.go:526 queue.go:527 queue.go:528 queue.go:529 queue.go:530 queue.go:531 queue.go:532 queue.go:533 queue.go:534 queue.go:535 queue.go:536 queue.go:537 queue.go:538 queue.go:539 queue.go:540 queue.go:541 queue.go:542 queue.go:543 queue.go:544 queue.go:545 queue.go:546 queue.go:547 queue.go:548 queue.go:549 queue.go:550 queue.go:551 queue.go:552 queue.go:553 queue.go:554 queue.go:555 queue.go:556 queue.go:557 queue.go:558 queue.go:559 queue.go:560 queue.go:561 queue.go:562 queue.go:563 queue.go:564 queue.go:565 queue.go:566 queue.go:567 queue.go:568 queue.go:569 queue.go:570 queue.go:571 queue.go:572 queue.go:573 queue.go:574 queue.go:575 queue.go:576 queue.go:577 queue.go:578 queue.go:579 queue.go:580 queue.go:581 queue.go:582 queue.go:583 queue.go:584 queue.go:585 queue.go:586 queue.go:587 queue.go:588 queue.go:589 queue.go:590 queue.go:591 queue.go:592 queue.go:593 queue.go:594 queue.go:595 queue.go:596 queue.go:597 queue.go:598 queue.go:599 queue.go:600 queue.go:601 queue.go:602 queue.go:603 queue.go:604 queue.go:605 queue.go:606 queue.go:607 queue.go:608 queue.go:609 queue.go:610 queue.go:611 queue.go:612 queue.go:613 queue.go:614 queue.go:615 queue.go:616 queue.go:617 queue.go:618 queue.go:619 queue.go:620 queue.go:621 queue.go:622 queue.go:623 queue.go:624 queue.go:625 queue.go:626 queue.go:627 queue.go:628 queue.go:629 queue.go:630 queue.go:631 queue.go:632 queue.go:633 queue.go:634 queue.go:635 queue.go:636 queue.go:637 queue.go:638 queue.go:639 queue.go:640 queue.go:641 queue.go:642 queue.go:643 queue.go:644 queue.go:645 queue.go:646 queue.go:647 queue.go:648 queue.go:649 queue.go:650 queue.go:651 queue.go:652 queue.go:653 queue.go:654 queue.go:655 queue.go:656 queue.go:657 queue.go:658 queue.go:659 queue.go:660 queue.go:661 queue.go:662 queue.go:663 queue.go:664 queue.go:665 queue.go:666 queue.go:667 queue.go:668 queue.go:669 queue.go:670 queue.go:671 queue.go:672 queue.go:673 queue.go:674 queue.go:675 queue.go:676 queue.go:677 queue.go:678 queue.go:679 queue.go:680 queue.go:681 queue.go:682 queue.go:683 queue.go:684 queue.go:685 queue.go:686 queue.go:687 queue.go:688 queue.go:689 queue.go:690 queue.go:691 queue.go:692 queue.go:693 queue.go:694 queue.go:695 queue.go:696 queue.go:697 queue.go:698 queue.go:699
