; MBC1_BANKS: 64 ROM banks, 4 RAM banks: both bank registers and both modes with all values, zero, wrap, the low area in mode
; 1, RAM enabled by odd values, disabled RAM, and code that runs from the end of one area into the next.
	.module mbc1_banks
	.include "mbc.inc"

	.area _CODE
begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	ldh	(IE),a
round:
	call	next_turn
	ld	a,#0			; mode 0
	ld	(0x6000),a
	call	all_banks
	ld	hl,#in_wram		; in mode 1 this code may vanish from 0000: run from WRAM
	ld	de,#0xC800
	ld	bc,#(in_wram_end - in_wram)
	call	copy
	call	0xC800
	call	enabling
	jr	round

; Registers 1 and 2 with all values, RAM counted in each.
all_banks:
	SELECT	0x0000, 0x0A
	ld	b,#0
1$:	ld	a,b
	ld	(0x2000),a
	rlca
	rlca
	rlca
	ld	(0x5FFF),a
	call	look_around
	call	count_ram
	inc	b
	ld	a,b
	cp	a,#0x48
	jr	nz,1$
	SELECT	0x3FFF, 0xE0		; 0 in the 5 bits that count
	call	look_around
	SELECT	0x2000, 0x01
	SELECT	0x4000, 0x00
	ret

; Mode 1: RAM banks, and another bank at 0000. Nothing in ROM may be called from here.
in_wram:
	ld	a,#1
	ld	(0x7FFF),a
	ld	b,#0
	ld	hl,#0xC300
1$:	ld	a,b
	ld	(0x4000),a
	ld	a,(0x0000)
	ld	(hl+),a
	ld	a,(0x0041)
	ld	(hl+),a
	ld	a,(0x4000)
	ld	(hl+),a
	ld	a,(0xA000)
	ld	(hl+),a
	add	a,b
	inc	a
	ld	(0xA000),a
	ld	a,b
	rlca
	ld	(0x2345),a
	ld	a,(0x4040)
	ld	(hl+),a
	ld	a,(0x7FFE)
	ld	(hl+),a
	ld	(0xA123),sp
	inc	b
	ld	a,b
	cp	a,#9
	jr	nz,1$
	xor	a,a
	ld	(0x6123),a
	ld	a,(0xA000)
	ld	(hl+),a
	xor	a,a
	ld	(0x4000),a
	inc	a
	ld	(0x2000),a
	ret
in_wram_end:

; RAM is on with A in the low nibble only; writes while it is off are lost.
enabling:
	ld	b,#0
1$:	ld	a,b
	ld	(0x1FFF),a
	LOOK	0xA000
	ld	a,b
	ld	(0xA000),a
	inc	b
	jr	nz,1$
	SELECT	0x0000, 0x0A
	call	look_around
	ld	(0x2000),sp		; a word over a register
	call	look_around
	SELECT	0x2000, 0x01
	SELECT	0x0000, 0x00
	call	look_around
	call	count_ram
	ret
