; EI_HALT: EI, DI, RETI, HALT and STOP in every order, requests made by hand, interrupts with SP in odd places, an interrupt
; that is lost because its own push changes IE, and the joypad interrupt.
	.module ei_halt
	.include "common.inc"

COUNTS = 0xC010			; one byte an interrupt

	.area _VECTORS (ABS)
	.org 0x0000
	jp	cancelled
	.org 0x0028
	ret
	.org 0x0038
	ret
	.org 0x0040
	jp	vblank_handler
	.org 0x0048
	jp	stat_handler
	.org 0x0050
	jp	timer_handler
	.org 0x0058
	jp	serial_handler
	.org 0x0060
	jp	joypad_handler

	.area _CODE
cancelled:
	push	af
	ld	a,(COUNTS + 5)
	inc	a
	ld	(COUNTS + 5),a
	pop	af
	ld	sp,#0xDFE0
	jp	after_cancelled

vblank_handler:
	push	af
	ld	a,(COUNTS)
	inc	a
	ld	(COUNTS),a
leave:
	pop	af
	reti

timer_handler:
	push	af
	ld	a,(COUNTS + 2)
	inc	a
	ld	(COUNTS + 2),a
	jr	leave

serial_handler:
	push	af
	ld	a,(COUNTS + 3)
	inc	a
	ld	(COUNTS + 3),a
	jr	leave

joypad_handler:
	push	af
	ldh	a,(P1)
	ld	(COUNTS + 4),a
	ei
	nop
	nop
	jr	leave

stat_handler:
	push	af
	push	bc
	ld	a,(COUNTS + 1)
	inc	a
	ld	(COUNTS + 1),a
	ldh	a,(LYC)
	add	a,#7
	cp	a,#154
	jr	c,1$
	xor	a,a
1$:	ldh	(LYC),a
	bit	0,a
	jr	z,2$
	ei				; nested
	ldh	a,(STAT)
	ld	b,a
	ldh	(STAT),a
	nop
	di
2$:	pop	bc
	pop	af
	ret				; IME stays off until someone says EI

begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	PUT	STAT, 0x40
round:
	call	next_turn
	call	by_hand
	call	delays
	call	halts
	call	events
	call	odd_stacks
	call	joypad
	call	lost
	jr	round

; All requests at once: by priority, each EI lets one through (and the handlers' RETI the others).
by_hand:
	PUT	IE, 0x1F
	PUT	IF, 0x1F
	ei
	nop
	nop
	di
	SEE	IF
	PUT	IF, 0xFF
	SEE	IF
	ei
	di				; never on
	SEE	IF
	ei
	ei
	nop
	di
	PUT	IE, 0x00
	PUT	IF, 0x1F
	ei
	nop
	PUT	IE, 0x08
	nop
	di
	SEE	IF
	ret

; EI and the one instruction after it.
delays:
	PUT	IE, 0x04
	PUT	IF, 0x04
	ei
	inc	b
	inc	b
	di
	xor	a,a
	ei
	ldh	(IF),a
	PUT	IE, 0x0C
	ld	a,#0x0C
	ei
	ldh	(IF),a
	nop
	di
	ld	a,#0x04
	ldh	(IF),a
	ei
	ldh	(IE),a
	nop
	di
	PUT	IF, 0x04
	ei
	rst	0x28
	di
	PUT	IF, 0x04
	ei
	jr	1$
1$:	di
	PUT	IF, 0x04
	ld	hl,#2$
	push	hl
	reti
2$:	nop
	di
	PUT	IF, 0x04
	ei
	stop
	nop
	di
	ld	a,#0x40
	ei
	ldh	(STAT),a
	ei
	ldh	(LYC),a
	ei
	ld	a,#0x91
	ei
	ldh	(LCDC),a
	ei
	ldh	(DIV),a
	di
	ret

; HALT with every mixture of IME, IE and IF.
halts:
	di
	PUT	IE, 0x04
	PUT	IF, 0x04
	halt				; goes on at once
	inc	b
	PUT	IF, 0x00
	PUT	TAC, 0x05
	PUT	TIMA, 0xF0
	halt				; the timer wakes it, nothing is taken
	inc	b
	SEE	IF
	xor	a,a
	ldh	(IF),a
	ei
	halt				; the handler comes back behind it
	inc	b
	PUT	IF, 0x04
	ei
	halt				; taken before it
	inc	b
	di
	PUT	TIMA, 0xF8
	xor	a,a
	ldh	(IF),a
	ei
	nop
	halt
	inc	b
	di
	PUT	TIMA, 0xFE
	xor	a,a
	ldh	(IF),a
	ei
	ei
	halt
	halt
	di
	ld	a,b
	call	log
	SEE	TIMA
	xor	a,a
	ldh	(TAC),a
	ldh	(IF),a
	ret

; VBlank and LYC wake HALT; the LCD is off for some of the time.
events:
	PUT	IE, 0x03
	xor	a,a
	ldh	(IF),a
	ei
	halt
	nop
	SEE	LY
	ei
	halt
	nop
	SEE	STAT
	ei
	halt
	nop
	SEE	LY
	di
	call	lcd_off_now
	PUT	LYC, 0
	PUT	TAC, 0x07
	PUT	IE, 0x04
	ei
	halt
	nop
	di
	SEE	STAT
	xor	a,a
	ldh	(TAC),a
	ldh	(IF),a
	PUT	IE, 0x02
	ei
	PUT	LCDC, 0x91
	nop
	nop
	SEE	STAT
	di
	SEE	IF
	ret

; Interrupts whose return address goes to HRAM, VRAM, echo, OAM, IO, ROM.
odd_stacks:
	ld	(0xC030),sp
	PUT	IE, 0x08
	ld	hl,#spots
1$:	ld	a,(hl+)
	ld	e,a
	ld	a,(hl+)
	ld	d,a
	or	a,e
	jr	z,2$
	push	hl
	ld	h,d
	ld	l,e
	ld	d,#0
	ld	(0xC032),sp
	ld	sp,hl
	PUT	IF, 0x08
	ei
	nop
	di
	ld	a,(0xC032)
	ld	l,a
	ld	a,(0xC033)
	ld	h,a
	ld	sp,hl
	pop	hl
	jr	1$
2$:	PUT	BGP, 0xE4
	ret
spots:
	.dw	0xFFA0, 0x9F00, 0xF100, 0xC180, 0x9810, 0xFFC0, 0

; A button's request, taken in HALT or not.
joypad:
	PUT	P1, 0x10
	PUT	IE, 0x11
	ei
	halt
	nop
	di
	PUT	P1, 0x20
	ldh	a,(P1)
	ld	(0xC040),a
	PUT	P1, 0x30
	SEE	P1
	PUT	P1, 0x00
	SEE	P1
	SEE	IF
	PUT	IF, 0
	ret

; The push of PC's high byte goes to IE and switches the interrupt off.
lost:
	ld	sp,#0x0000
	PUT	IE, 0x10
	PUT	IF, 0x10
	ei
	nop
	nop
	nop
	di
after_cancelled:
	ld	sp,#0xDFF0
	ldh	a,(IE)
	call	log
	PUT	IE, 0
	PUT	IF, 0
	jp	round
