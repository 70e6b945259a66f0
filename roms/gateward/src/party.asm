; Fighters: their numbers by species and level, experience, the party.
	.module party
	.include "game.inc"
	.include "data.inc"

	.area _CODE

; HL = the data of species A. Keeps BC, DE.
species_at::
	push	de
	ld	l,a
	ld	h,#0
	add	hl,hl
	add	hl,hl
	add	hl,hl
	add	hl,hl
	ld	de,#species_table
	add	hl,de
	pop	de
	ret

; HL = fighter A of the party. Keeps BC, DE.
mon_at::
	push	de
	push	bc
	ld	l,a
	ld	h,#0
	ld	a,#MON_SIZE
	call	multiply
	ld	de,#wPartyMons
	add	hl,de
	pop	bc
	pop	de
	ret

; Make a fighter of species A and level B in wNewMon.
mon_make::
	ld	c,a
	ld	hl,#wNewMon
	ld	d,#MON_SIZE
	xor	a,a
1$:	ld	(hl+),a
	dec	d
	jr	nz,1$
	ld	hl,#wNewMon
	ld	(hl),c
	ld	de,#MON_LEVEL
	add	hl,de
	ld	(hl),b
	ld	hl,#wNewMon
	call	mon_species_set
	ld	a,(wNewMon + MON_MAXHP + 1)
	ld	(wNewMon + MON_HP + 1),a
	ld	a,(wNewMon + MON_LEVEL)	; as much experience as this level needs
	call	exp_for
	ld	a,d
	ld	(wNewMon + MON_EXP + 1),a
	ld	a,e
	ld	(wNewMon + MON_EXP + 2),a
	ld	a,(wNewMon + MON_LEVEL)
	ld	c,a			; moves up to this level
	ld	b,#1
2$:	ld	hl,#wNewMon
	call	mon_learn
	inc	b
	ld	a,c
	cp	a,b
	jr	nc,2$
	ret

; Types and numbers of the fighter at HL by its species and level.
mon_species_set::
	push	hl
	ld	a,(hl)
	call	species_at
	ld	d,h
	ld	e,l
	pop	hl
	push	hl
	ld	a,#MON_TYPE1
	call	add_hl_a
	ld	a,(de)
	inc	de
	ld	(hl+),a
	ld	a,(de)
	inc	de
	ld	(hl),a
	pop	hl
	ld	a,#MON_LEVEL
	call	add_hl_a
	ld	c,(hl)
	inc	hl
	inc	hl
	call	scaled			; HP: base * level / 40 + level + 10
	add	a,c
	add	a,#5
	ld	(hl+),a
	ld	b,#3
1$:	inc	hl			; attack, defense, speed: base * level / 40 + 5
	push	bc
	call	scaled
	pop	bc
	ld	(hl+),a
	dec	b
	jr	nz,1$
	ret

; A = base at DE, which moves on, * level C / 40 + 5. Keeps C, HL.
scaled:
	ld	a,(de)
	inc	de
	push	hl
	push	de
	push	bc
	ld	l,c
	ld	h,#0
	call	multiply
	ld	c,#LEVEL_LIMIT
	call	divide
	ld	a,l
	add	a,#5
	pop	bc
	pop	de
	pop	hl
	ret

; DE = the experience that level A needs. Changes HL.
exp_for::
	ld	hl,#exp_table
	add	a,a
	call	add_hl_a
	ld	a,(hl+)
	ld	d,(hl)
	ld	e,a
	ret

; The fighter at HL learns what its species learns at level B. wStringBuffer = the move's name, and carry, if it does.
; With four moves it forgets the first. Keeps BC.
mon_learn::
	push	bc
	push	hl
	ld	a,(hl)
	call	species_at
	ld	a,#SPECIES_MOVES
	call	add_hl_a
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
1$:	ld	a,(hl+)			; level
	or	a,a
	jr	z,6$
	cp	a,b
	ld	a,(hl+)			; move
	jr	nz,1$
	pop	hl
	ld	c,a
	ld	a,#MON_MOVES
	call	add_hl_a
	ld	b,#4
2$:	ld	a,(hl)
	or	a,a
	jr	z,4$
	inc	hl
	dec	b
	jr	nz,2$
	ld	d,h			; one behind the fourth
	ld	e,l
	ld	a,l
	sub	a,#4
	ld	e,a
	jr	nc,3$
	dec	d
3$:	push	bc			; DE = the first, HL = the second
	ld	h,d
	ld	l,e
	inc	hl
	ld	bc,#3
	call	copy
	pop	bc
	ld	h,d
	ld	l,e
4$:	ld	(hl),c
	ld	a,c
	call	move_name
	call	string_set
	pop	bc
	scf
	ret
6$:	pop	hl
	pop	bc
	or	a,a
	ret

; Put the fighter in wNewMon into the party. Carry: it is full.
party_add::
	ld	a,(wPartyCount)
	cp	a,#PARTY_LENGTH
	ccf
	ret	c
	call	mon_at
	ld	d,h
	ld	e,l
	ld	hl,#wNewMon
	ld	bc,#MON_SIZE
	call	copy
	ld	hl,#wPartyCount
	inc	(hl)

; wPartySpecies by what is in the party. No carry.
party_list::
	ld	de,#wPartySpecies
	ld	hl,#wPartyMons
	ld	a,(wPartyCount)
	ld	b,a
	or	a,a
	jr	z,2$
1$:	ld	a,(hl)
	ld	(de),a
	inc	de
	ld	a,#MON_SIZE
	call	add_hl_a
	dec	b
	jr	nz,1$
2$:	ld	a,#0xFF
	ld	(de),a
	or	a,a
	ret

; All fighters are as good as new.
party_heal::
	ld	hl,#wPartyMons
	ld	a,(wPartyCount)
	or	a,a
	ret	z
	ld	b,a
1$:	push	hl
	ld	de,#MON_MAXHP + 1
	add	hl,de
	ld	a,(hl)
	ld	de,#MON_HP + 1 - MON_MAXHP - 1
	add	hl,de
	ld	(hl),a
	pop	hl
	ld	de,#MON_SIZE
	add	hl,de
	dec	b
	jr	nz,1$
	ret

; The fighters A and 0 of the party change places.
party_swap::
	or	a,a
	ret	z
	call	mon_at
	ld	de,#wPartyMons
	ld	b,#MON_SIZE
1$:	ld	c,(hl)
	ld	a,(de)
	ld	(hl+),a
	ld	a,c
	ld	(de),a
	inc	de
	dec	b
	jr	nz,1$
	jr	party_list

; A = the first of the party that can fight; carry if none can.
party_first::
	ld	a,(wPartyCount)
	ld	b,a
	ld	c,#0
	ld	hl,#wPartyMons + MON_HP + 1
	or	a,a
	scf
	ret	z
1$:	ld	a,(hl)
	or	a,a
	ld	a,c
	ret	nz			; OR left no carry
	ld	a,#MON_SIZE
	call	add_hl_a
	inc	c
	dec	b
	jr	nz,1$
	scf
	ret

; Heal the fighter at HL by A at most. Keeps HL.
mon_heal::
	push	hl
	ld	b,a
	ld	de,#MON_MAXHP + 1
	add	hl,de
	ld	c,(hl)
	pop	hl
	push	hl
	inc	hl
	inc	hl			; MON_HP, low byte
	ld	a,(hl)
	add	a,b
	jr	c,1$
	cp	a,c
	jr	c,2$
1$:	ld	a,c
2$:	ld	(hl),a
	pop	hl
	ret

; HL = the bag's entry of item A; carry: there is none. Keeps BC, DE.
bag_find::
	push	bc
	ld	b,a
	ld	hl,#wBagItems
1$:	ld	a,(hl)
	cp	a,#0xFF
	jr	z,2$
	cp	a,b
	jr	z,3$
	inc	hl
	inc	hl
	jr	1$
2$:	scf
3$:	pop	bc
	ret

; Put B of item A into the bag.
bag_add::
	ld	c,a
	call	bag_find
	jr	nc,1$
	ld	a,c			; HL = the end
	ld	(hl+),a
	ld	(hl),#0
	inc	hl
	ld	(hl),#0xFF
	dec	hl
	dec	hl
	push	hl
	ld	hl,#wNumBagItems
	inc	(hl)
	pop	hl
1$:	inc	hl
	ld	a,(hl)
	add	a,b
	cp	a,#100
	jr	c,2$
	ld	a,#99
2$:	ld	(hl),a
	ret

; Take one of item A out of the bag.
bag_take::
	call	bag_find
	ret	c
	inc	hl
	dec	(hl)
	ret	nz
	ld	d,h			; the last one: close the gap
	ld	e,l
	dec	de
	inc	hl
	ld	a,(wNumBagItems)
	dec	a
	ld	(wNumBagItems),a
1$:	ld	a,(hl+)
	ld	(de),a
	inc	de
	cp	a,#0xFF
	jr	nz,1$
	ret
