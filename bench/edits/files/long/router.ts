import { EventEmitter } from 'node:events';

export type Handler = (request: Request, params: Params) => Promise<Response> | Response;
export type Params = Record<string, string>;

interface Route {
  method: string;
  parts: string[];
  handler: Handler;
}

export class NotFound extends Error {
  constructor(readonly path: string) {
    super(`there is nothing at ${path}`);
    this.name = 'NotFound';
  }
}

export class Router extends EventEmitter {
  private routes: Route[] = [];
  private prefix = '';

  constructor(private readonly base: string = '/') {
    super();
  }

  at(prefix: string, build: (router: Router) => void): this {
    const before = this.prefix;
    this.prefix = `${before}${prefix}`;
    try {
      build(this);
    } finally {
      this.prefix = before;
    }
    return this;
  }

  on(method: string, pattern: string, handler: Handler): this {
    const parts = `${this.prefix}${pattern}`.split('/').filter((part) => part !== '');
    this.routes.push({ method: method.toUpperCase(), parts, handler });
    return this;
  }

  get(pattern: string, handler: Handler): this {
    return this.on('GET', pattern, handler);
  }

  post(pattern: string, handler: Handler): this {
    return this.on('POST', pattern, handler);
  }

  private match(route: Route, method: string, parts: string[]): Params | undefined {
    if (route.method !== method || route.parts.length !== parts.length) {
      return undefined;
    }
    const params: Params = {};
    for (const [index, part] of route.parts.entries()) {
      const given = parts[index];
      if (part.startsWith(':')) {
        params[part.slice(1)] = decodeURIComponent(given);
      } else if (part !== given) {
        return undefined;
      }
    }
    return params;
  }

  async handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const parts = url.pathname.split('/').filter((part) => part !== '');
    for (const route of this.routes) {
      const params = this.match(route, request.method, parts);
      if (params !== undefined) {
        this.emit('match', url.pathname);
        return await route.handler(request, params);
      }
    }
    this.emit('miss', url.pathname);
    throw new NotFound(url.pathname);
  }
}

export function json(value: unknown, status = 200): Response {
  const body = JSON.stringify(value);
  return new Response(body, {
    status,
    headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
  });
}
# router.ts:0 router.ts:1 router.ts:2 router.ts:3 router.ts:4 router.ts:5 router.ts:6 router.ts:7 router.ts:8 router.ts:9 router.ts:10 router.ts:11 router.ts:12 router.ts:13 router.ts:14 router.ts:15 router.ts:16 router.ts:17 router.ts:18 router.ts:19 router.ts:20 router.ts:21 router.ts:22 router.ts:23 router.ts:24 router.ts:25 router.ts:26 router.ts:27 router.ts:28 router.ts:29 router.ts:30 router.ts:31 router.ts:32 router.ts:33 router.ts:34 router.ts:35 router.ts:36 router.ts:37 router.ts:38 router.ts:39 router.ts:40 router.ts:41 router.ts:42 router.ts:43 router.ts:44 router.ts:45 router.ts:46 router.ts:47 router.ts:48 router.ts:49 router.ts:50 router.ts:51 router.ts:52 router.ts:53 router.ts:54 router.ts:55 router.ts:56 router.ts:57 router.ts:58 router.ts:59 router.ts:60 router.ts:61 router.ts:62 router.ts:63 router.ts:64 router.ts:65 router.ts:66 router.ts:67 router.ts:68 router.ts:69 router.ts:70 router.ts:71 router.ts:72 router.ts:73 router.ts:74 router.ts:75 router.ts:76 router.ts:77 router.ts:78 router.ts:79 router.ts:80 router.ts:81 router.ts:82 router.ts:83 router.ts:84 router.ts:85 router.ts:86 router.ts:87 router.ts:88 router.ts:89 router.ts:90 router.ts:91 router.ts:92 router.ts:93 router.ts:94 router.ts:95 router.ts:96 router.ts:97 router.ts:98 router.ts:99 router.ts:100 router.ts:101 router.ts:102 router.ts:103 router.ts:104 router.ts:105 router.ts:106 router.ts:107 router.ts:108 router.ts:109 router.ts:110 router.ts:111 router.ts:112 router.ts:113 router.ts:114 router.ts:115 router.ts:116 router.ts:117 router.ts:118 router.ts:119 router.ts:120 router.ts:121 router.ts:122 router.ts:123 router.ts:124 router.ts:125 router.ts:126 router.ts:127 router.ts:128 router.ts:129 router.ts:130 router.ts:131 router.ts:132 router.ts:133 router.ts:134 router.ts:135 router.ts:136 router.ts:137 router.ts:138 router.ts:139 router.ts:140 router.ts:141 router.ts:142 router.ts:143 router.ts:144 router.ts:145 router.ts:146 router.ts:147 router.ts:148 router.ts:149 router.ts:150 router.ts:151 router.ts:152 router.ts:153 router.ts:154 router.ts:155 router.ts:156 router.ts:157 router.ts:158 router.ts:159 router.ts:160 router.ts:161 router.ts:162 router.ts:163 router.ts:164 router.ts:165 router.ts:166 router.ts:167 router.ts:168 router.ts:169 router.ts:170 router.ts:171 router.ts:172 router.ts:173 router.ts:174 router.ts:175 router.ts:176 router.ts:177 router.ts:178 router.ts:179 router.ts:180 router.ts:181 router.ts:182 router.ts:183 router.ts:184 router.ts:185 router.ts:186 router.ts:187 router.ts:188 router.ts:189 router.ts:190 router.ts:191 router.ts:192 router.ts:193 router.ts:194 router.ts:195 router.ts:196 router.ts:197 router.ts:198 router.ts:199 router.ts:200 router.ts:201 router.ts:202 router.ts:203 router.ts:204 router.ts:205 router.ts:206 router.ts:207 router.ts:208 router.ts:209 router.ts:210 router.ts:211 router.ts:212 router.ts:213 router.ts:214 router.ts:215 router.ts:216 router.ts:217 router.ts:218 router.ts:219 router.ts:220 router.ts:221 router.ts:222 router.ts:223 router.ts:224 router.ts:225 router.ts:226 router.ts:227 router.ts:228 router.ts:229 router.ts:230 router.ts:231 router.ts:232 router.ts:233 router.ts:234 router.ts:235 router.ts:236 router.ts:237 router.ts:238 router.ts:239 router.ts:240 router.ts:241 router.ts:242 router.ts:243 router.ts:244 router.ts:245 router.ts:246 router.ts:247 router.ts:248 router.ts:249 router.ts:250 router.ts:251 router.ts:252 router.ts:253 router.ts:254 router.ts:255 router.ts:256 router.ts:257 router.ts:258 router.ts:259 router.ts:260 router.ts:261 router.ts:262 router.ts:263 router.ts:264 router.ts:265 router.ts:266 router.ts:267 router.ts:268 router.ts:269 router.ts:270 router.ts:271 router.ts:272 router.ts:273 router.ts:274 router.ts:275 router.ts:276 router.ts:277 router.ts:278 router.ts:279 router.ts:280 router.ts:281 router.ts:282 router.ts:283 router.ts:284 router.ts:285 router.ts:286 router.ts:287 router.ts:288 router.ts:289 router.ts:290 router.ts:291 router.ts:292 router.ts:293 router.ts:294 router.ts:295 router.ts:296 router.ts:297 router.ts:298 router.ts:299 router.ts:300 router.ts:301 router.ts:302 router.ts:303 router.ts:304 router.ts:305 router.ts:306 router.ts:307 router.ts:308 router.ts:309 router.ts:310 router.ts:311 router.ts:312 router.ts:313 router.ts:314 router.ts:315 router.ts:316 router.ts:317 router.ts:318 router.ts:319 router.ts:320 router.ts:321 router.ts:322 router.ts:323 router.ts:324 router.ts:325 router.ts:326 router.ts:327 router.ts:328 router.ts:329 router.ts:330 router.ts:331 router.ts:332 router.ts:333 router.ts:334 router.ts:335 router.ts:336 router.ts:337 router.ts:338 router.ts:339 router.ts:340 router.ts:341 router.ts:342 router.ts:343 router.ts:344 router.ts:345 router.ts:346 router.ts:347 router.ts:348 router.ts:349 router.ts:350 router.ts:351 router.ts:352 router.ts:353 router.ts:354 router.ts:355 router.ts:356 router.ts:357 router.ts:358 router.ts:359 router.ts:360 router.ts:361 router.ts:362 router.ts:363 router.ts:364 router.ts:365 router.ts:366 router.ts:367 router.ts:368 router.ts:369 router.ts:370 router.ts:371 router.ts:372 router.ts:373 router.ts:374 router.ts:375 router.ts:376 router.ts:377 router.ts:378 router.ts:379 router.ts:380 router.ts:381 router.ts:382 router.ts:383 router.ts:384 router.ts:385 router.ts:386 router.ts:387 router.ts:388 router.ts:389 router.ts:390 router.ts:391 router.ts:392 router.ts:393 router.ts:394 router.ts:395 router.ts:396 router.ts:397 router.ts:398 router.ts:399 router.ts:400 router.ts:401 router.ts:402 router.ts:403 router.ts:404 router.ts:405 router.ts:406 router.ts:407 router.ts:408 router.ts:409 router.ts:410 router.ts:411 router.ts:412 router.ts:413 router.ts:414 router.ts:415 router.ts:416 router.ts:417 router.ts:418 router.ts:419 router.ts:420 router.ts:421 router.ts:422 router.ts:423 router.ts:424 router.ts:425 router.ts:426 router.ts:427 router.ts:428 router.ts:429 router.ts:430 router.ts:431 router.ts:432 router.ts:433 router.ts:434 router.ts:435 router.ts:436 router.ts:437 router.ts:438 router.ts:439 router.ts:440 router.ts:441 router.ts:442 router.ts:443 router.ts:444 router.ts:445 router.ts:446 router.ts:447 router.ts:448 router.ts:449 router.ts:450 router.ts:451 router.ts:452 router.ts:453 router.ts:454 router.ts:455 router.ts:456 router.ts:457 router.ts:458 router.ts:459 router.ts:460 router.ts:461 router.ts:462 router.ts:463 router.ts:464 router.ts:465 router.ts:466 router.ts:467 router.ts:468 router.ts:469 router.ts:470 router.ts:471 router.ts:472 router.ts:473 router.ts:474 router.ts:475 router.ts:476 router.ts:477 router.ts:478 router.ts:479 router.ts:480 router.ts:481 router.ts:482 router.ts:483 router.ts:484 router.ts:485 router.ts:486 router.ts:487 router.ts:488 router.ts:489 router.ts:490 router.ts:491 router.ts:492 router.ts:493 router.ts:494 router.ts:495 router.ts:496 router.ts:497 router.ts:498 router.ts:499 router.ts:500 router.ts:501 router.ts:502 router.ts:503 router.ts:504 router.ts:505 router.ts:506 router.ts:507 router.ts:508 router.ts:509 router.ts:510 router.ts:511 router.ts:512 router.ts:513 router.ts:514 router.ts:515 router.ts:516 router.ts:517 router.ts:518 router.ts:519 router.ts:520 router.ts:521 router.ts:522 router.ts:523 router.ts:524 router.ts:525 router.ts:526 router.ts:527 router.ts:528 router.ts:529 router.ts:530 router.ts:531 router.ts:532 router.ts:533 router.ts:534 router.ts:535 router.ts:536 router.ts:537 router.ts:538 router.ts:539 router.ts:540 router.ts:541 router.ts:542 router.ts:543 router.ts:544 router.ts:545 router.ts:546 router.ts:547 router.ts:548 router.ts:549 router.ts:550 router.ts:551 router.ts:552 router.ts:553 router.ts:554 router.ts:555 router.ts:556 router.ts:557 router.ts:558 router.ts:559 router.ts:560 router.ts:561 router.ts:562 router.ts:563 router.ts:564 router.ts:565 router.ts:566 router.ts:567 router.ts:568 router.ts:569 router.ts:570 router.ts:571 router.ts:572 router.ts:573 router.ts:574 router.ts:575 router.ts:576 router.ts:577 router.ts:578 router.ts:579 router.ts:580 router.ts:581 router.ts:582 router.ts:583 router.ts:584 router.ts:585 router.ts:586 router.ts:587 router.ts:588 router.ts:589 router.ts:590 router.ts:591 router.ts:592 router.ts:593 router.ts:594 router.ts:595 router.ts:596 router.ts:597 router.ts:598 router.ts:599 router.ts:600 router.ts:601 router.ts:602 router.ts:603 router.ts:604 router.ts:605 router.ts:606 router.ts:607 router.ts:608 router.ts:609 router.ts:610 router.ts:611 router.ts:612 router.ts:613 router.ts:614 router.ts:615 router.ts:616 router.ts:617 router.ts:618 router.ts:619 router.ts:620 router.ts:621 router.ts:622 router.ts:623 router.ts:624 router.ts:625 router.ts:626 router.ts:627 router.ts:628 router.ts:629 router.ts:630 router.ts:631 router.ts:632 router.ts:633 router.ts:634 router.ts:635 router.ts:636 router.ts:637 router.ts:638 router.ts:639 router.ts:640 router.ts:641 router.ts:642 router.ts:643 router.ts:644 router.ts:645 router.ts:646 router.ts:647 router.ts:648 router.ts:649 router.ts:650 router.ts:651 router.ts:652 router.ts:653 router.ts:654 router.ts:655 router.ts:656 router.ts:657 router.ts:658 router.ts:659 router.ts:660 router.ts:661 router.ts:662 router.ts:663 router.ts:664 router.ts:665 router.ts:666 router.ts:667 router.ts:668 router.ts:669 router.ts:670 router.ts:671 router.ts:672 router.ts:673 router.ts:674 router.ts:675 router.ts:676 router.ts:677 router.ts:678 router.ts:679 router.ts:680 router.ts:681 router.ts:682 router.ts:683 router.ts:684 router.ts:685 router.ts:686 router.ts:687 router.ts:688 router.ts:689 router.ts:690 router.ts:691 router.ts:692 router.ts:693 router.ts:694 router.ts:695 router.ts:696 router.ts:697 router.ts:698 router.ts:699
