; TIMER_INTERRUPT: TIMA at all speeds, the windows around its reload, edges made by writing DIV and TAC, the divider, timer
; and serial interrupts taken everywhere.
	.module timer_interrupt
	.include "common.inc"

	.area _VECTORS (ABS)
	.org 0x0050
	push	af
	ldh	a,(TIMA)
	ldh	(0xFF90),a
	jp	timer_end
	.org 0x0058
	push	af
	ldh	a,(SC)
	ldh	(0xFF92),a
	jp	timer_end

	.area _CODE
timer_end:
	ldh	a,(0xFF91)
	inc	a
	ldh	(0xFF91),a
	pop	af
	reti

; WINDOW n, write: TIMA is about to overflow; n NOPs after that moment's approach the write happens.
	.macro	WINDOW count, reg, val
	PUT	TAC, 0x05
	PUT	TMA, 0xD7
	xor	a,a
	ldh	(DIV),a
	ld	a,#0xFF
	ldh	(TIMA),a
	ld	a,#val
	.rept	count
	nop
	.endm
	ldh	(reg),a
	ldh	a,(TIMA)
	ld	b,a
	ldh	a,(TIMA)
	ld	c,a
	ldh	a,(IF)
	call	log
	ld	a,b
	call	log
	ld	a,c
	call	log
	xor	a,a
	ldh	(IF),a
	.endm

begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	ldh	(IE),a
round:
	call	next_turn
	call	windows
	call	words
	call	glitches
	call	divider
	call	speeds
	call	serial
	jr	round

windows:
	WINDOW	0, TIMA, 0x42
	WINDOW	1, TIMA, 0x42
	WINDOW	2, TIMA, 0x42
	WINDOW	3, TIMA, 0x42
	WINDOW	4, TIMA, 0x42
	WINDOW	0, TMA, 0x99
	WINDOW	1, TMA, 0x99
	WINDOW	2, TMA, 0x99
	WINDOW	3, TMA, 0x99
	WINDOW	0, DIV, 0
	WINDOW	1, DIV, 0
	WINDOW	2, DIV, 0
	WINDOW	0, TAC, 0
	WINDOW	1, TAC, 0
	WINDOW	1, TAC, 6
	WINDOW	2, TAC, 7
	WINDOW	3, IF, 0x1F
	ret

; 16-bit writes over the timer's registers.
words:
	ld	(0xFF05),sp		; TIMA and TMA
	SEE	TIMA
	ld	(0xFF06),sp
	SEE	TAC
	ld	(0xFF04),sp
	SEE	TIMA
	ld	(0xFF03),sp
	SEE	DIV
	ret

; TIMA counts when DIV or TAC is written while the divider's bit is 1.
glitches:
	ld	d,#0x04
1$:	ld	a,d
	ldh	(TAC),a
	PUT	TIMA, 0xFE
	PUT	TMA, 0x00
	ldh	a,(turn)
	or	a,#1
	call	wait_a
	xor	a,a
	ldh	(DIV),a
	SEE	TIMA
	ldh	a,(turn)
	inc	a
	or	a,#8
	call	wait_a
	xor	a,a
	ldh	(TAC),a
	SEE	TIMA
	ld	a,d
	xor	a,#3
	ldh	(TAC),a
	SEE	TIMA
	SEE	IF
	inc	d
	ld	a,d
	cp	a,#8
	jr	nz,1$
	xor	a,a
	ldh	(IF),a
	ret

divider:
	ldh	a,(DIV)
	ld	b,a
1$:	ldh	a,(DIV)
	cp	a,b
	jr	z,1$
	call	log
	xor	a,a
	ldh	(DIV),a
	call	wait_phase
	ld	hl,#DIV
	ld	b,#20
2$:	ld	a,(hl)
	add	a,c
	ld	c,a
	dec	b
	jr	nz,2$
	ld	a,c
	call	log
	stop
	SEE	DIV
	ret

; Interrupts at all four speeds while other things happen.
speeds:
	PUT	IE, 0x04
	ld	d,#0x04
1$:	ld	a,d
	ldh	(TAC),a
	PUT	TMA, 0xF3
	ldh	(TIMA),a
	ei
	ld	b,#60
2$:	push	bc
	ld	hl,#0xC400
	inc	(hl)
	ld	(0xC402),sp
	pop	bc
	add	sp,#-2
	add	sp,#2
	dec	b
	jr	nz,2$
	halt
	halt
	nop
	di
	inc	d
	ld	a,d
	cp	a,#8
	jr	nz,1$
	xor	a,a
	ldh	(TAC),a
	ldh	(IE),a
	ldh	a,(0xFF91)
	call	log
	ret

; Transfers: internal clock, external clock, stopped half way, started twice.
serial:
	PUT	IE, 0x08
	PUT	SB, 0x55
	SEE	SB
	PUT	SC, 0x81
	ei				; a NOP before HALT: in PyBoy the handler comes back to a HALT that follows EI
	nop
	halt
	nop
	di
	SEE	SC
	PUT	SC, 0x80
	ld	a,#80
	call	wait_a
	SEE	SC
	PUT	SC, 0x81
	ld	a,#30
	call	wait_a
	PUT	SC, 0x81
	ld	a,#40
	call	wait_a
	SEE	SC
	PUT	SC, 0x01
	ld	a,#70
	call	wait_a
	SEE	SC
	PUT	SC, 0x83
	ei
	ld	b,#200
1$:	ldh	a,(SC)
	add	a,c
	ld	c,a
	dec	b
	jr	nz,1$
	di
	ld	a,c
	call	log
	xor	a,a
	ldh	(IE),a
	ldh	(IF),a
	ret
