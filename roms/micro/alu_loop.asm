; ALU_LOOP: arithmetic without memory traffic: every ALU operation, rotate and flag instruction in one endless loop.
; The upper bound of speed in benchmarks. C000 counts rounds of 256 loops, C001-C008 hold the registers then.
	.module alu_loop
	.include "common.inc"

	.area _CODE
begin:
	ld	sp,#0xDFF0
	ld	bc,#0x1234
	ld	de,#0x5678
	ld	hl,#0x9ABC
	xor	a,a
	ldh	(turn),a
round:
	ld	a,#0
	ldh	(0xFF82),a
loop:
	add	a,b
	adc	a,c
	sub	a,d
	sbc	a,e
	xor	a,h
	or	a,l
	daa
	rlca
	adc	a,#0x3B
	rra
	inc	b
	dec	c
	rlc	d
	rr	e
	sla	h
	sra	l
	swap	b
	srl	c
	cpl
	bit	3,a
	jr	z,1$
	scf
1$:	ccf
	set	5,d
	res	2,e
	add	hl,bc
	add	hl,de
	inc	bc
	dec	de
	add	hl,hl
	cp	a,h
	jr	c,2$
	and	a,#0x7F
2$:	push	af
	ldh	a,(0xFF82)
	inc	a
	ldh	(0xFF82),a
	jr	z,3$
	pop	af
	jr	loop
3$:	pop	af
	ld	sp,#0xC009
	push	hl
	push	de
	push	bc
	push	af
	ld	sp,#0xDFF0
	call	next_turn
	jr	round
