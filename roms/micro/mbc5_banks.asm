; MBC5_BANKS: 32 ROM banks, 4 RAM banks: 9 bits of bank with bank 0 at 4000 and wrap, RAM only by 0A exactly, RAM bank numbers
; with wrap, and code that crosses 3FFF with every bank behind it.
	.module mbc5_banks
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
	ld	a,b
	rra
	ld	(0x3000),a
	call	look_around
	inc	b
	ld	a,b
	cp	a,#0x43
	jr	nz,1$
2$:	ld	a,b
	ld	(0x2FFF),a
	LOOK	0x4000
	ld	a,b
	ld	(0x3FFF),a
	LOOK	0x4000
	ld	a,b
	ld	(0x5FFF),a
	LOOK	0xA000
	inc	b
	jr	nz,2$
3$:	ld	a,b
	ld	(0x0FFF),a
	LOOK	0xA1FF
	ld	a,b
	ld	(0xA1FF),a
	inc	b
	jr	nz,3$
	SELECT	0x6000, 0x01		; nothing there
	SELECT	0x0000, 0x0A
	SELECT	0x3000, 0x00
	SELECT	0x2000, 0x00
	call	look_around
	SELECT	0x2000, 0x01
	ld	(0x2FFF),sp
	call	look_around
	SELECT	0x3000, 0x00
	SELECT	0x2000, 0x01
	call	0x3FFC
	ld	a,b
	call	log
	jp	round

	.area _SEAM (ABS)
	.org 0x3FFC
	inc	b
	ld	b,#0x41
	inc	b
	inc	b
	ret
