; MBC2_BANKS: 16 ROM banks and 512 half bytes of RAM: address bit 8 tells the registers apart, RAM repeats and reads F in its
; upper half, values beyond 4 bits, writes above 3FFF that do nothing.
	.module mbc2_banks
	.include "mbc.inc"

	.area _CODE
begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	ldh	(IE),a
round:
	call	next_turn
	ld	b,#0
1$:	SELECT	0x0000, 0x0A
	ld	a,b
	ld	(0x2100),a
	call	look_around
	call	count_ram
	ld	a,b
	ld	(0x0100),a		; bank as well
	call	look_around
	ld	a,b
	ld	(0x3EFF),a		; RAM as well
	call	look_around
	ld	a,b
	ld	(0x4000),a
	ld	(0x6100),a
	ld	(0x5FFF),a
	call	look_around
	inc	b
	ld	a,b
	cp	a,#0x24
	jr	nz,1$
	SELECT	0x0000, 0x1A
	ld	hl,#0xA000
	ld	bc,#0x0300
	ldh	a,(turn)
	call	fill
	call	look_around
	SELECT	0x2000, 0x0B
	call	count_ram
	call	look_around
	SELECT	0x2101, 0x01
	ld	(0x20FF),sp
	call	look_around
	jp	round
