; MBC3_BANKS: 16 ROM banks, 4 RAM banks, no clock: 7 bits of bank with zero and wrap, RAM bank numbers beyond 3, the clock's
; register numbers, enabling by odd values.
	.module mbc3_banks
	.include "mbc.inc"

	.area _CODE
begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	ldh	(IE),a
round:
	call	next_turn
	SELECT	0x0000, 0x0A
	ld	b,#0
1$:	ld	a,b
	ld	(0x2000),a
	call	look_around
	ld	a,b
	ld	(0x4000),a
	call	count_ram
	call	look_around
	inc	b
	ld	a,b
	cp	a,#0x22
	jr	nz,1$
2$:	ld	a,b
	ld	(0x3ABC),a
	LOOK	0x4000
	ld	a,b
	ld	(0x5DEF),a
	LOOK	0xA000
	inc	b
	jr	nz,2$
3$:	ld	a,b
	ld	(0x1234),a
	LOOK	0xBFFF
	ld	a,b
	ld	(0xBFFF),a
	inc	b
	jr	nz,3$
	SELECT	0x6000, 0x00
	SELECT	0x7FFF, 0x01
	SELECT	0x0000, 0x0A
	SELECT	0x4000, 0x00
	call	look_around
	SELECT	0x2000, 0x80
	call	look_around
	ld	(0x3FFF),sp		; bank and RAM bank in one word
	call	look_around
	SELECT	0x2000, 0x01
	jp	round
