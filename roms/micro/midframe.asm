; MIDFRAME: SCX, SCY, LCDC and palettes changed within the frame, by STAT interrupts (LYC, mode 0, mode 2, all together),
; by polling and by counting cycles; LYC written at awkward moments; the LCD switched off and on in the middle of frames.
	.module midframe
	.include "common.inc"

	.area _VECTORS (ABS)
	.org 0x0040
	jp	vblank
	.org 0x0048
	jp	stat

	.area _CODE
vblank:
	push	af
	ld	a,(0xC010)
	inc	a
	ld	(0xC010),a
	xor	a,a
	ldh	(LYC),a
	pop	af
	reti

; Each STAT interrupt moves something and sets the next LYC.
stat:
	push	af
	push	hl
	ld	a,(0xC011)
	inc	a
	ld	(0xC011),a
	ld	hl,#0xC012
	inc	(hl)
	ld	a,(hl)
	rlca
	ldh	(SCX),a
	bit	1,(hl)
	jr	z,1$
	ldh	(BGP),a
1$:	bit	2,(hl)
	jr	z,2$
	ldh	a,(LCDC)
	xor	a,#0x18
	ldh	(LCDC),a
2$:	bit	3,(hl)
	jr	z,3$
	ldh	a,(SCY)
	add	a,#3
	ldh	(SCY),a
3$:	ldh	a,(LYC)
	add	a,#3
	cp	a,#150
	jr	nc,4$
	ldh	(LYC),a
4$:	ldh	a,(STAT)
	ld	l,a
	ld	h,#0xC6
	inc	(hl)
	pop	hl
	pop	af
	reti

begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	ldh	(IE),a
	call	lcd_off
	call	make_picture
	PUT	LCDC, 0x91
round:
	call	next_turn
	call	interrupts
	call	counting
	call	polling
	call	compare
	call	switching
	jp	round

; One frame for each setting of STAT.
interrupts:
	ld	d,#0
1$:	PUT	IE, 0x03
	ld	a,d
	rlca
	rlca
	rlca
	and	a,#0x78
	ldh	(STAT),a
	ei
	ld	a,(0xC010)
	ld	b,a
2$:	ld	a,(0xC010)
	cp	a,b
	jr	z,2$
	di
	ld	a,(0xC011)
	call	log
	inc	d
	ld	a,d
	and	a,#0x0F
	jr	nz,1$
	xor	a,a
	ldh	(IE),a
	ldh	(IF),a
	ldh	(STAT),a
	ret

; 456 T-cycles a turn, so that each write falls on the same place of its line; the place moves with the round.
counting:
	ld	a,#2
	call	wait_line
	ldh	a,(turn)
	or	a,#0x80
	rlca
	and	a,#0x1F
	inc	a
	call	wait_a
	ld	b,#100
1$:	ld	a,b
	ldh	(SCX),a
	swap	a
	ldh	(SCY),a
	ldh	(BGP),a
	ld	a,#22
2$:	dec	a
	jr	nz,2$
	nop
	dec	b
	jr	nz,1$
	PUT	BGP, 0xE4
	ret

; LY and STAT as fast as they can be read over the end of a line, the end of the frame and into VBlank.
polling:
	ld	hl,#lines
1$:	ld	a,(hl+)
	cp	a,#0xFF
	ret	z
	call	wait_line
	ldh	a,(turn)
	and	a,#0x0F
	add	a,#4
	call	wait_a
	push	hl
	ld	hl,#STAT
	ld	de,#LY
	.rept	12
	ld	a,(de)
	add	a,c
	ld	c,a
	ld	a,(hl)
	add	a,b
	ld	b,a
	ldh	a,(LY)
	xor	a,c
	ld	c,a
	ldh	a,(STAT)
	xor	a,b
	ld	b,a
	.endm
	ld	a,b
	call	log
	ld	a,c
	call	log
	pop	hl
	jp	1$
lines:
	.db	0, 1, 71, 142, 143, 144, 151, 152, 153, 0xFF

; LYC set to the line that is, was and will be, with the interrupt request looked at.
compare:
	PUT	STAT, 0x40
	ld	b,#40
1$:	xor	a,a
	ldh	(IF),a
	ldh	a,(LY)
	ldh	(LYC),a
	ldh	a,(IF)
	call	log
	ldh	a,(LY)
	inc	a
	ldh	(LYC),a
	ld	a,b
	and	a,#0x1F
	inc	a
	call	wait_a
	ldh	a,(IF)
	call	log
	ldh	a,(STAT)
	call	log
	ld	hl,#LYC
	inc	(hl)
	dec	(hl)
	ld	hl,#STAT
	ld	a,(hl)
	xor	a,#0x28
	ld	(hl),a
	ldh	a,(IF)
	call	log
	dec	b
	jr	nz,1$
	xor	a,a
	ldh	(STAT),a
	ldh	(IF),a
	ret

; Off and on within the picture, in VBlank, twice in a row, with LYC written while it is off.
switching:
	ld	d,#8
1$:	ld	a,d
	rlca
	rlca
	rlca
	rlca
	call	wait_line
	ldh	a,(turn)
	and	a,#0x1F
	inc	a
	call	wait_a
	ldh	a,(LCDC)
	and	a,#0x7F
	ldh	(LCDC),a
	SEE	STAT
	SEE	LY
	ldh	a,(turn)
	rra
	jr	c,2$
	xor	a,a
	ldh	(LYC),a
2$:	PUT	STAT, 0x48
	SEE	IF
	PUT	BGP, 0x1B
	ld	a,d
	add	a,#20
	call	wait_a
	PUT	LCDC, 0x91
	ldh	a,(STAT)
	ld	b,a
	ldh	a,(STAT)
	ld	c,a
	ldh	a,(LY)
	ld	hl,#0x8000
	ld	e,(hl)
	ld	a,(hl)
	call	log
	ld	a,b
	call	log
	ld	a,c
	call	log
	ld	a,(0xFE00)
	ld	hl,#0xFE00
	ld	a,(hl)
	call	log
	ld	a,d
	add	a,#3
	call	wait_a
	ld	hl,#STAT
	.rept	10
	ld	a,(hl)
	add	a,b
	ld	b,a
	.endm
	ld	a,b
	call	log
	SEE	IF
	PUT	LCDC, 0x11
	PUT	LCDC, 0x91
	PUT	STAT, 0x00
	PUT	BGP, 0xE4
	dec	d
	jp	nz,1$
	ret
