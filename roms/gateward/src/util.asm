; Numbers, chance, events, money, names: what all other parts use.
	.module util
	.include "game.inc"
	.include "data.inc"

	.area _CODE

; Map ROM bank A.
bank_set::
	ldh	(hBank),a
	ld	(MBC_ROM_BANK),a
	ret

; Copy BC bytes from HL to DE.
copy::
	ld	a,(hl+)
	ld	(de),a
	inc	de
	dec	bc
	ld	a,b
	or	a,c
	jr	nz,copy
	ret

; HL += A. Changes A.
add_hl_a::
	add	a,l
	ld	l,a
	ret	nc
	inc	h
	ret

; HL = HL * A, the low 16 bits. Changes A, B, DE.
multiply::
	ld	d,h
	ld	e,l
	ld	hl,#0
	ld	b,#8
1$:	add	hl,hl
	add	a,a
	jr	nc,2$
	add	hl,de
2$:	dec	b
	jr	nz,1$
	ret

; HL = HL / C, A = the remainder. Changes B.
divide::
	xor	a,a
	ld	b,#16
1$:	add	hl,hl
	rla
	jr	c,2$
	cp	a,c
	jr	c,3$
2$:	sub	a,c
	inc	l
3$:	dec	b
	jr	nz,1$
	ret

; A = the next random number, of a 16-bit xorshift (7, 9, 8). Keeps BC, DE, HL.
random::
	push	hl
	.include "random.inc"
	pop	hl
	ret

; A = a random number below A.
random_below::
	push	bc
	ld	b,a
	call	random
1$:	cp	a,b
	jr	c,2$
	sub	a,b
	jr	1$
2$:	pop	bc
	ret

; HL, B = the byte and the bit of event A. Changes A, C.
event_at:
	ld	c,a
	and	a,#7
	ld	b,#1
	jr	z,2$
1$:	sla	b
	dec	a
	jr	nz,1$
2$:	ld	a,c
	rrca
	rrca
	rrca
	and	a,#0x1F
	ld	hl,#wEventFlags
	jp	add_hl_a

; Z is clear if event A has happened. Keeps all but A.
event_test::
	push	hl
	push	bc
	call	event_at
	ld	a,(hl)
	and	a,b
	pop	bc
	pop	hl
	ret

; Event A happens. Keeps all but A.
event_set::
	push	hl
	push	bc
	call	event_at
	ld	a,(hl)
	or	a,b
	ld	(hl),a
	pop	bc
	pop	hl
	ret

event_clear::
	push	hl
	push	bc
	call	event_at
	ld	a,b
	cpl
	and	a,(hl)
	ld	(hl),a
	pop	bc
	pop	hl
	ret

; Add the three bytes of decimal digits at HL to the money; it stops at 999999.
money_add::
	inc	hl
	inc	hl
	ld	de,#wPlayerMoney + 2
	ld	b,#3
	or	a,a
1$:	ld	a,(de)
	adc	a,(hl)
	daa
	ld	(de),a
	dec	de
	dec	hl			; INC and DEC of pairs keep the carry
	dec	b
	jr	nz,1$
	ret	nc
	ld	a,#0x99
	ld	hl,#wPlayerMoney
	ld	(hl+),a
	ld	(hl+),a
	ld	(hl),a
	ret

; Pay the three bytes of decimal digits at HL. Carry: there is not enough, and nothing is paid.
money_pay::
	push	hl
	ld	de,#wPlayerMoney
	ld	b,#3
1$:	ld	a,(de)
	cp	a,(hl)
	jr	c,4$
	jr	nz,2$
	inc	de
	inc	hl
	dec	b
	jr	nz,1$
2$:	pop	hl
	inc	hl
	inc	hl
	ld	de,#wPlayerMoney + 2
	ld	b,#3
	or	a,a
3$:	ld	a,(de)
	sbc	a,(hl)
	daa
	ld	(de),a
	dec	de
	dec	hl
	dec	b
	jr	nz,3$
	or	a,a
	ret
4$:	pop	hl
	scf
	ret

; Half of the money is lost. A decimal 10 halves to 5, where a hexadecimal one halves to 8.
money_halve::
	ld	hl,#wPlayerMoney
	ld	b,#3
	ld	c,#0			; the carry
1$:	ld	a,c
	rrca				; bit 0 to the carry
	ld	a,(hl)
	push	af
	and	a,#1
	ld	c,a
	pop	af
	rra
	bit	3,a
	jr	z,2$
	sub	a,#0x03
2$:	bit	7,a
	jr	z,3$
	sub	a,#0x30
3$:	ld	(hl+),a
	dec	b
	jr	nz,1$
	ret

; HL = the name of species A, of move A, of item A.
species_name::
	ld	hl,#species_names
	jr	name_at
move_name::
	ld	hl,#move_names
name_at:
	push	de
	push	hl
	ld	l,a			; * 10
	ld	h,#0
	ld	d,h
	ld	e,l
	add	hl,hl
	add	hl,hl
	add	hl,de
	add	hl,hl
	pop	de
	add	hl,de
	pop	de
	ret
item_at::
item_name::
	push	de
	ld	l,a			; * 16
	ld	h,#0
	add	hl,hl
	add	hl,hl
	add	hl,hl
	add	hl,hl
	ld	de,#item_table
	add	hl,de
	pop	de
	ret

; Copy the name at HL to wStringBuffer.
string_set::
	push	de
	ld	de,#wStringBuffer
1$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	or	a,a
	jr	nz,1$
	pop	de
	ret
