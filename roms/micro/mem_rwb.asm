; MEM_RWB: reads, writes and read-modify-writes of memory of all kinds, bytes and words: WRAM, echo, VRAM, OAM, FEA0-FEFF,
; HRAM, IO; each addressing mode, with stack and code in odd places too.
	.module mem_rwb
	.include "common.inc"

	.area _CODE
begin:
	ld	sp,#0xDFF0
	xor	a,a
	ldh	(turn),a
	call	lcd_off
	call	make_picture
	PUT	LCDC, 0x93
round:
	call	next_turn
	call	wait_phase
	call	locks
	call	modify
	call	stacks
	call	code_in_ram
	call	block
	jr	round

; Opcodes 12, 1A and 7E look ahead and see the locks of VRAM and OAM; the others do not.
locks:
	ld	c,#40
1$:	ld	hl,#0x8010
	ld	de,#0xFE04
	ld	a,(hl)
	call	log
	ld	a,(de)
	call	log
	ld	b,(hl)
	ld	a,b
	call	log
	ld	a,c
	ld	(de),a
	ld	d,h
	ld	e,l
	ld	(de),a
	ld	(hl),c
	inc	(hl)
	ld	a,(de)
	call	log
	ld	hl,#0xFE05
	ld	(hl),c
	rl	(hl)
	ld	a,(hl+)
	call	log
	ld	a,(hl-)
	call	log
	ld	bc,#0x9801
	ld	a,(bc)
	call	log
	ld	a,#0x21
	ld	(bc),a
	ld	a,(0x9801)
	call	log
	ld	a,(0xFE05)
	call	log
	ld	a,(0xFEA3)
	inc	a
	ld	(0xFEA3),a
	call	log
	ldh	a,(turn)
	and	a,#7
	add	a,#2
	call	wait_a
	ldh	a,(0xFF83)
	dec	a
	and	a,#0x1F
	ldh	(0xFF83),a
	ld	c,a
	jr	nz,1$
	ret

; Read-modify-write of registers that change by themselves.
modify:
	ld	hl,#LY
	inc	(hl)
	rl	(hl)
	ld	hl,#STAT
	set	6,(hl)
	inc	(hl)
	ld	a,(hl)
	call	log
	res	5,(hl)
	ld	hl,#DIV
	inc	(hl)
	ld	a,(hl)
	call	log
	swap	(hl)
	ld	hl,#IF
	inc	(hl)
	srl	(hl)
	ld	a,(hl)
	call	log
	ld	hl,#TIMA
	dec	(hl)
	set	7,(hl)
	ld	a,(hl)
	call	log
	ld	hl,#P1
	set	5,(hl)
	ld	a,(hl)
	call	log
	ld	hl,#0xFFFF
	inc	(hl)
	ld	a,(hl)
	call	log
	ld	(hl),#0
	ld	hl,#0xFF03
	inc	(hl)
	ld	a,(hl)
	call	log
	ld	hl,#0xFF30
	ld	(hl),#0x77
	ld	a,(hl)
	call	log
	ld	hl,#LYC
	inc	(hl)
	xor	a,a
	ldh	(IF),a
	ret

; Words written anywhere, read back by POP; SP is put right each time.
stacks:
	ld	(0xC010),sp
	ld	(0xE012),sp
	ld	(0x9C00),sp
	ld	(0xFE08),sp
	ld	(0xFF42),sp		; SCY and SCX
	ld	(0xFF05),sp
	ld	(0xFFFE),sp		; the last byte of HRAM and IE
	xor	a,a
	ldh	(IE),a
	ld	(0x0FFF),sp
	ld	hl,#0
	add	hl,sp
	ld	b,h
	ld	c,l
	ld	sp,#0xFFA0
	push	bc
	pop	de
	ld	sp,#0x8F00
	push	de
	pop	hl
	ld	sp,#0xF000		; echo of D000
	push	hl
	pop	de
	ld	sp,#0xFE22
	push	de
	pop	de
	ld	sp,#0xFF49		; OBP0 and BGP
	push	de
	pop	de
	ld	sp,#0xC100
	push	de
	ld	sp,#0xFF44		; POP of LY and LYC
	pop	af
	ld	sp,#0xFFFF		; POP of IE and the ROM's first byte
	pop	af
	ld	sp,#0x0001
	pop	de
	push	de
	ld	sp,#0xC0FE
	pop	de
	ld	h,b
	ld	l,c
	ld	sp,hl
	PUT	BGP, 0xE4
	ldhl	sp,#-3
	ld	a,l
	call	log
	add	sp,#-5
	add	sp,#5
	ret

; A routine copied to RAM of every kind and run there.
routine:
	ldh	a,(LY)
	ld	b,a
	ld	a,(0xFF41)
	ld	(0xC020),a
	ld	a,(0xFE10)
	ld	hl,#0x8100
	ld	a,(hl)
	ld	(0x8101),sp
	inc	(hl)
	ret
routine_end:

code_in_ram:
	ld	hl,#places
1$:	ld	a,(hl+)
	ld	d,a
	or	a,a
	ret	z
	ld	a,(hl+)
	ld	e,a
	push	hl
	push	de
	ld	a,d
	cp	a,#0xA0
	jr	nc,2$
	call	lcd_off_now
	jr	3$
2$:	cp	a,#0xFE
	call	z,lcd_off_now
3$:	ld	hl,#routine
	ld	bc,#(routine_end - routine)
	call	copy
	pop	hl
	PUT	LCDC, 0x93
	call	4$
	ld	a,b
	call	log
	pop	hl
	jr	1$
4$:	jp	(hl)
places:
	.db	0xC3,0x00, 0xE4,0x00, 0x98,0x40, 0xFF,0xA0, 0xFE,0x20, 0xFE,0xB0, 0x8F,0xF4, 0xDF,0x40, 0

; Code that runs over 3FFF and 7FFF; 8000 holds INC B, RET.
block:
	call	0x3FFA
	ld	a,b
	call	log
	call	lcd_off_now
	POKE	0x8000, 0x04
	POKE	0x8001, 0xC9
	PUT	LCDC, 0x91
	call	0x7FFB
	ld	a,b
	call	log
	ret

	.area _SEAM (ABS)
	.org 0x3FFA
	inc	b
	ld	a,#1
	ld	bc,#0x2C2D
	ld	a,#0x0C
	ret
	.org 0x7FFB
	inc	b
	inc	b
	ld	a,#0x10
	inc	b
