; What a victory brings: experience, levels, moves, another shape, money.
	.module battle_win
	.include "game.inc"
	.include "data.inc"

	.area _CODE

; The enemy has fallen: experience; then its trainer's next fighter, or the end.
enemy_falls::
	call	lines_begin
	ld	a,(wEnemyMonSpecies)
	call	species_name
	call	print
	ld	hl,#str_falls
	call	print
	call	experience
	ld	a,(wIsInBattle)
	cp	a,#WILD
	jr	z,2$
	call	enemy_next
	jr	c,1$
	call	wait_more
	jp	battle_screen
1$:	call	wait_more
	ld	a,(wTrainerNo)
	call	trainer_at
	call	string_set
	push	hl
	call	money_add
	pop	hl
	ld	hl,#text_won
	call	text_say
	jr	3$
2$:	call	wait_more
3$:	ld	hl,#wBattlesWon
	inc	(hl)
	jp	battle_end

; The species' experience * level / 4, half as much again from a trainer, for the fighter; half of that for all others of
; the party that stand.
experience:
	ld	a,(wEnemyMonSpecies)
	call	species_at
	ld	a,#SPECIES_EXP
	call	add_hl_a
	ld	l,(hl)
	ld	h,#0
	ld	a,(wEnemyMonLevel)
	call	multiply
	srl	h
	rr	l
	srl	h
	rr	l
	ld	a,(wIsInBattle)
	cp	a,#TRAINER
	jr	nz,1$
	ld	d,h
	ld	e,l
	srl	d
	rr	e
	add	hl,de
1$:	ld	b,h
	ld	c,l
	ld	a,(wPartyCount)
2$:	dec	a
	ldh	(hCount),a
	push	bc
	ld	hl,#wPlayerMonNumber
	cp	a,(hl)
	jr	z,3$
	srl	b
	rr	c
3$:	call	mon_at
	inc	hl
	inc	hl
	ld	a,(hl-)
	dec	hl
	or	a,a
	call	nz,gain
	pop	bc
	ldh	a,(hCount)
	or	a,a
	jr	nz,2$
	ret

; The fighter at HL gains BC experience; it may rise in level.
gain:
	push	hl
	ld	de,#MON_EXP + 2
	add	hl,de
	ld	a,(hl)
	add	a,c
	ld	(hl-),a
	ld	a,(hl)
	adc	a,b
	ld	(hl),a
	jr	nc,1$
	ld	a,#0xFF			; as much as there can be
	ld	(hl+),a
	ld	(hl),a
1$:	pop	hl
2$:	push	hl
	ld	de,#MON_LEVEL
	add	hl,de
	ld	a,(hl)
	pop	hl
	cp	a,#LEVEL_LIMIT
	ret	nc
	push	hl
	inc	a
	ld	b,a			; the next level
	call	exp_for
	pop	hl
	push	hl
	ld	a,#MON_EXP + 1
	call	add_hl_a
	ld	a,(hl+)
	cp	a,d
	jr	c,3$
	jr	nz,4$
	ld	a,(hl)
	cp	a,e
	jr	nc,4$
3$:	pop	hl
	ret
4$:	pop	hl
	push	hl
	call	level_up
	pop	hl
	jr	2$

; The fighter at HL comes to level B.
level_up:
	push	hl
	ld	de,#MON_LEVEL
	add	hl,de
	ld	(hl),b
	inc	hl
	inc	hl
	ld	a,(hl)			; the HP grow as the most that it can have
	pop	hl
	push	bc
	push	af
	push	hl
	push	hl
	call	evolve
	call	mon_species_set
	pop	hl
	ld	de,#MON_MAXHP + 1
	add	hl,de
	ld	c,(hl)
	pop	hl
	pop	af
	cpl
	inc	a
	add	a,c
	push	hl
	call	mon_heal
	pop	hl
	pop	bc
	call	is_active
	jp	nz,mon_learn		; only the one that fights is spoken of
	push	bc
	push	hl
	call	line_next
	ld	hl,#str_rises
	call	print
	ld	a,b
	call	print_number
	pop	hl
	pop	bc
	call	mon_learn
	ret	nc
	ld	a,(wBattleRow)		; behind the level
	add	a,#9
	ld	e,a
	ld	a,(wBattleRow + 1)
	adc	a,#0
	ld	d,a
	ld	hl,#wStringBuffer
	jp	print

; The fighter at HL becomes another species if its level B is that high. Keeps B, HL.
evolve:
	push	hl
	ld	a,(hl)
	call	species_at
	ld	a,#SPECIES_EVOLVE
	call	add_hl_a
	ld	a,(hl+)
	or	a,a
	jr	z,1$
	dec	a
	cp	a,b
	ld	a,(hl)
	pop	hl
	ret	nc
	ld	(hl),a
	push	bc
	push	hl
	call	party_list
	pop	hl
	pop	bc
	ret
1$:	pop	hl
	ret

; Z: the experience is that of the fighter in battle.
is_active:
	push	hl
	ldh	a,(hCount)
	ld	hl,#wPlayerMonNumber
	cp	a,(hl)
	pop	hl
	ret
