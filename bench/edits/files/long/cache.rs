//! A cache with a bound, and a price for each entry.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// How an entry left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    Expired,
    Evicted,
    Removed,
}

struct Slot<V> {
    value: V,
    price: usize,
    until: Instant,
}

/// A cache.
pub struct Cache<K, V> {
    slots: HashMap<K, Slot<V>>,
    order: Vec<K>,
    limit: usize,
    spent: usize,
    lifetime: Duration,
}

impl<K: Hash + Eq + Clone, V> Cache<K, V> {
    pub fn new(limit: usize, lifetime: Duration) -> Self {
        Self { slots: HashMap::new(), order: Vec::new(), limit, spent: 0, lifetime }
    }

    pub fn get(&mut self, key: &K) -> Option<&V> {
        let now = Instant::now();
        let expired = self.slots.get(key).is_some_and(|slot| slot.until <= now);
        if expired {
            self.take(key, Gone::Expired);
            return None;
        }
        self.slots.get(key).map(|slot| &slot.value)
    }

    pub fn put(&mut self, key: K, value: V, price: usize) -> Result<(), usize> {
        if price > self.limit {
            return Err(price - self.limit);
        }
        while self.spent + price > self.limit {
            let oldest = self.order[0].clone();
            self.take(&oldest, Gone::Evicted);
        }
        let until = Instant::now() + self.lifetime;
        self.order.retain(|known| *known != key);
        self.order.push(key.clone());
        if let Some(old) = self.slots.insert(key, Slot { value, price, until }) {
            self.spent -= old.price;
        }
        self.spent += price;
        Ok(())
    }

    pub fn remove(&mut self, key: &K) -> bool {
        self.take(key, Gone::Removed)
    }

    fn take(&mut self, key: &K, how: Gone) -> bool {
        let Some(slot) = self.slots.remove(key) else {
            return false;
        };
        self.spent -= slot.price;
        self.order.retain(|known| known != key);
        if how == Gone::Expired {
            eprintln!("an entry of price {} expired", slot.price);
        }
        true
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_lets_the_oldest_go() {
        let mut cache = Cache::new(10, Duration::from_secs(60));
        cache.put("one", 1, 6).unwrap();
        cache.put("two", 2, 6).unwrap();
        assert_eq!(cache.get(&"one"), None);
        assert_eq!(cache.get(&"two"), Some(&2));
    }

    #[test]
    fn what_is_too_dear_is_refused() {
        let mut cache = Cache::new(10, Duration::from_secs(60));
        assert_eq!(cache.put("big", 0, 12), Err(2));
        assert!(cache.is_empty());
    }
}
# cache.rs:0 cache.rs:1 cache.rs:2 cache.rs:3 cache.rs:4 cache.rs:5 cache.rs:6 cache.rs:7 cache.rs:8 cache.rs:9 cache.rs:10 cache.rs:11 cache.rs:12 cache.rs:13 cache.rs:14 cache.rs:15 cache.rs:16 cache.rs:17 cache.rs:18 cache.rs:19 cache.rs:20 cache.rs:21 cache.rs:22 cache.rs:23 cache.rs:24 cache.rs:25 cache.rs:26 cache.rs:27 cache.rs:28 cache.rs:29 cache.rs:30 cache.rs:31 cache.rs:32 cache.rs:33 cache.rs:34 cache.rs:35 cache.rs:36 cache.rs:37 cache.rs:38 cache.rs:39 cache.rs:40 cache.rs:41 cache.rs:42 cache.rs:43 cache.rs:44 cache.rs:45 cache.rs:46 cache.rs:47 cache.rs:48 cache.rs:49 cache.rs:50 cache.rs:51 cache.rs:52 cache.rs:53 cache.rs:54 cache.rs:55 cache.rs:56 cache.rs:57 cache.rs:58 cache.rs:59 cache.rs:60 cache.rs:61 cache.rs:62 cache.rs:63 cache.rs:64 cache.rs:65 cache.rs:66 cache.rs:67 cache.rs:68 cache.rs:69 cache.rs:70 cache.rs:71 cache.rs:72 cache.rs:73 cache.rs:74 cache.rs:75 cache.rs:76 cache.rs:77 cache.rs:78 cache.rs:79 cache.rs:80 cache.rs:81 cache.rs:82 cache.rs:83 cache.rs:84 cache.rs:85 cache.rs:86 cache.rs:87 cache.rs:88 cache.rs:89 cache.rs:90 cache.rs:91 cache.rs:92 cache.rs:93 cache.rs:94 cache.rs:95 cache.rs:96 cache.rs:97 cache.rs:98 cache.rs:99 cache.rs:100 cache.rs:101 cache.rs:102 cache.rs:103 cache.rs:104 cache.rs:105 cache.rs:106 cache.rs:107 cache.rs:108 cache.rs:109 cache.rs:110 cache.rs:111 cache.rs:112 cache.rs:113 cache.rs:114 cache.rs:115 cache.rs:116 cache.rs:117 cache.rs:118 cache.rs:119 cache.rs:120 cache.rs:121 cache.rs:122 cache.rs:123 cache.rs:124 cache.rs:125 cache.rs:126 cache.rs:127 cache.rs:128 cache.rs:129 cache.rs:130 cache.rs:131 cache.rs:132 cache.rs:133 cache.rs:134 cache.rs:135 cache.rs:136 cache.rs:137 cache.rs:138 cache.rs:139 cache.rs:140 cache.rs:141 cache.rs:142 cache.rs:143 cache.rs:144 cache.rs:145 cache.rs:146 cache.rs:147 cache.rs:148 cache.rs:149 cache.rs:150 cache.rs:151 cache.rs:152 cache.rs:153 cache.rs:154 cache.rs:155 cache.rs:156 cache.rs:157 cache.rs:158 cache.rs:159 cache.rs:160 cache.rs:161 cache.rs:162 cache.rs:163 cache.rs:164 cache.rs:165 cache.rs:166 cache.rs:167 cache.rs:168 cache.rs:169 cache.rs:170 cache.rs:171 cache.rs:172 cache.rs:173 cache.rs:174 cache.rs:175 cache.rs:176 cache.rs:177 cache.rs:178 cache.rs:179 cache.rs:180 cache.rs:181 cache.rs:182 cache.rs:183 cache.rs:184 cache.rs:185 cache.rs:186 cache.rs:187 cache.rs:188 cache.rs:189 cache.rs:190 cache.rs:191 cache.rs:192 cache.rs:193 cache.rs:194 cache.rs:195 cache.rs:196 cache.rs:197 cache.rs:198 cache.rs:199 cache.rs:200 cache.rs:201 cache.rs:202 cache.rs:203 cache.rs:204 cache.rs:205 cache.rs:206 cache.rs:207 cache.rs:208 cache.rs:209 cache.rs:210 cache.rs:211 cache.rs:212 cache.rs:213 cache.rs:214 cache.rs:215 cache.rs:216 cache.rs:217 cache.rs:218 cache.rs:219 cache.rs:220 cache.rs:221 cache.rs:222 cache.rs:223 cache.rs:224 cache.rs:225 cache.rs:226 cache.rs:227 cache.rs:228 cache.rs:229 cache.rs:230 cache.rs:231 cache.rs:232 cache.rs:233 cache.rs:234 cache.rs:235 cache.rs:236 cache.rs:237 cache.rs:238 cache.rs:239 cache.rs:240 cache.rs:241 cache.rs:242 cache.rs:243 cache.rs:244 cache.rs:245 cache.rs:246 cache.rs:247 cache.rs:248 cache.rs:249 cache.rs:250 cache.rs:251 cache.rs:252 cache.rs:253 cache.rs:254 cache.rs:255 cache.rs:256 cache.rs:257 cache.rs:258 cache.rs:259 cache.rs:260 cache.rs:261 cache.rs:262 cache.rs:263 cache.rs:264 cache.rs:265 cache.rs:266 cache.rs:267 cache.rs:268 cache.rs:269 cache.rs:270 cache.rs:271 cache.rs:272 cache.rs:273 cache.rs:274 cache.rs:275 cache.rs:276 cache.rs:277 cache.rs:278 cache.rs:279 cache.rs:280 cache.rs:281 cache.rs:282 cache.rs:283 cache.rs:284 cache.rs:285 cache.rs:286 cache.rs:287 cache.rs:288 cache.rs:289 cache.rs:290 cache.rs:291 cache.rs:292 cache.rs:293 cache.rs:294 cache.rs:295 cache.rs:296 cache.rs:297 cache.rs:298 cache.rs:299 cache.rs:300 cache.rs:301 cache.rs:302 cache.rs:303 cache.rs:304 cache.rs:305 cache.rs:306 cache.rs:307 cache.rs:308 cache.rs:309 cache.rs:310 cache.rs:311 cache.rs:312 cache.rs:313 cache.rs:314 cache.rs:315 cache.rs:316 cache.rs:317 cache.rs:318 cache.rs:319 cache.rs:320 cache.rs:321 cache.rs:322 cache.rs:323 cache.rs:324 cache.rs:325 cache.rs:326 cache.rs:327 cache.rs:328 cache.rs:329 cache.rs:330 cache.rs:331 cache.rs:332 cache.rs:333 cache.rs:334 cache.rs:335 cache.rs:336 cache.rs:337 cache.rs:338 cache.rs:339 cache.rs:340 cache.rs:341 cache.rs:342 cache.rs:343 cache.rs:344 cache.rs:345 cache.rs:346 cache.rs:347 cache.rs:348 cache.rs:349 cache.rs:350 cache.rs:351 cache.rs:352 cache.rs:353 cache.rs:354 cache.rs:355 cache.rs:356 cache.rs:357 cache.rs:358 cache.rs:359 cache.rs:360 cache.rs:361 cache.rs:362 cache.rs:363 cache.rs:364 cache.rs:365 cache.rs:366 cache.rs:367 cache.rs:368 cache.rs:369 cache.rs:370 cache.rs:371 cache.rs:372 cache.rs:373 cache.rs:374 cache.rs:375 cache.rs:376 cache.rs:377 cache.rs:378 cache.rs:379 cache.rs:380 cache.rs:381 cache.rs:382 cache.rs:383 cache.rs:384 cache.rs:385 cache.rs:386 cache.rs:387 cache.rs:388 cache.rs:389 cache.rs:390 cache.rs:391 cache.rs:392 cache.rs:393 cache.rs:394 cache.rs:395 cache.rs:396 cache.rs:397 cache.rs:398 cache.rs:399 cache.rs:400 cache.rs:401 cache.rs:402 cache.rs:403 cache.rs:404 cache.rs:405 cache.rs:406 cache.rs:407 cache.rs:408 cache.rs:409 cache.rs:410 cache.rs:411 cache.rs:412 cache.rs:413 cache.rs:414 cache.rs:415 cache.rs:416 cache.rs:417 cache.rs:418 cache.rs:419 cache.rs:420 cache.rs:421 cache.rs:422 cache.rs:423 cache.rs:424 cache.rs:425 cache.rs:426 cache.rs:427 cache.rs:428 cache.rs:429 cache.rs:430 cache.rs:431 cache.rs:432 cache.rs:433 cache.rs:434 cache.rs:435 cache.rs:436 cache.rs:437 cache.rs:438 cache.rs:439 cache.rs:440 cache.rs:441 cache.rs:442 cache.rs:443 cache.rs:444 cache.rs:445 cache.rs:446 cache.rs:447 cache.rs:448 cache.rs:449 cache.rs:450 cache.rs:451 cache.rs:452 cache.rs:453 cache.rs:454 cache.rs:455 cache.rs:456 cache.rs:457 cache.rs:458 cache.rs:459 cache.rs:460 cache.rs:461 cache.rs:462 cache.rs:463 cache.rs:464 cache.rs:465 cache.rs:466 cache.rs:467 cache.rs:468 cache.rs:469 cache.rs:470 cache.rs:471 cache.rs:472 cache.rs:473 cache.rs:474 cache.rs:475 cache.rs:476 cache.rs:477 cache.rs:478 cache.rs:479 cache.rs:480 cache.rs:481 cache.rs:482 cache.rs:483 cache.rs:484 cache.rs:485 cache.rs:486 cache.rs:487 cache.rs:488 cache.rs:489 cache.rs:490 cache.rs:491 cache.rs:492 cache.rs:493 cache.rs:494 cache.rs:495 cache.rs:496 cache.rs:497 cache.rs:498 cache.rs:499 cache.rs:500 cache.rs:501 cache.rs:502 cache.rs:503 cache.rs:504 cache.rs:505 cache.rs:506 cache.rs:507 cache.rs:508 cache.rs:509 cache.rs:510 cache.rs:511 cache.rs:512 cache.rs:513 cache.rs:514 cache.rs:515 cache.rs:516 cache.rs:517 cache.rs:518 cache.rs:519 cache.rs:520 cache.rs:521 cache.rs:522 cache.rs:523 cache.rs:524 cache.rs:525 cache.rs:526 cache.rs:527 cache.rs:528 cache.rs:529 cache.rs:530 cache.rs:531 cache.rs:532 cache.rs:533 cache.rs:534 cache.rs:535 cache.rs:536 cache.rs:537 cache.rs:538 cache.rs:539 cache.rs:540 cache.rs:541 cache.rs:542 cache.rs:543 cache.rs:544 cache.rs:545 cache.rs:546 cache.rs:547 cache.rs:548 cache.rs:549 cache.rs:550 cache.rs:551 cache.rs:552 cache.rs:553 cache.rs:554 cache.rs:555 cache.rs:556 cache.rs:557 cache.rs:558 cache.rs:559 cache.rs:560 cache.rs:561 cache.rs:562 cache.rs:563 cache.rs:564 cache.rs:565 cache.rs:566 cache.rs:567 cache.rs:568 cache.rs:569 cache.rs:570 cache.rs:571 cache.rs:572 cache.rs:573 cache.rs:574 cache.rs:575 cache.rs:576 cache.rs:577 cache.rs:578 cache.rs:579 cache.rs:580 cache.rs:581 cache.rs:582 cache.rs:583 cache.rs:584 cache.rs:585 cache.rs:586 cache.rs:587 cache.rs:588 cache.rs:589 cache.rs:590 cache.rs:591 cache.rs:592 cache.rs:593 cache.rs:594 cache.rs:595 cache.rs:596 cache.rs:597 cache.rs:598 cache.rs:599 cache.rs:600 cache.rs:601 cache.rs:602 cache.rs:603 cache.rs:604 cache.rs:605 cache.rs:606 cache.rs:607 cache.rs:608 cache.rs:609 cache.rs:610 cache.rs:611 cache.rs:612 cache.rs:613 cache.rs:614 cache.rs:615 cache.rs:616 cache.rs:617 cache.rs:618 cache.rs:619 cache.rs:620 cache.rs:621 cache.rs:622 cache.rs:623 cache.rs:624 cache.rs:625 cache.rs:626 cache.rs:627 cache.rs:628 cache.rs:629 cache.rs:630 cache.rs:631 cache.rs:632 cache.rs:633 cache.rs:634 cache.rs:635 cache.rs:636 cache.rs:637 cache.rs:638 cache.rs:639 cache.rs:640 cache.rs:641 cache.rs:642 cache.rs:643 cache.rs:644 cache.rs:645 cache.rs:646 cache.rs:647 cache.rs:648 cache.rs:649 cache.rs:650 cache.rs:651 cache.rs:652 cache.rs:653 cache.rs:654 cache.rs:655 cache.rs:656 cache.rs:657 cache.rs:658 cache.rs:659 cache.rs:660 cache.rs:661 cache.rs:662 cache.rs:663 cache.rs:664 cache.rs:665 cache.rs:666 cache.rs:667 cache.rs:668 cache.rs:669 cache.rs:670 cache.rs:671 cache.rs:672 cache.rs:673 cache.rs:674 cache.rs:675 cache.rs:676 cache.rs:677 cache.rs:678 cache.rs:679 cache.rs:680 cache.rs:681 cache.rs:682 cache.rs:683 cache.rs:684 cache.rs:685 cache.rs:686 cache.rs:687 cache.rs:688 cache.rs:689 cache.rs:690 cache.rs:691 cache.rs:692 cache.rs:693 cache.rs:694 cache.rs:695 cache.rs:696 cache.rs:697 cache.rs:698 cache.rs:699
