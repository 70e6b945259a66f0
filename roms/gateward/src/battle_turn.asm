; The moves of a round, damage, and what a victory brings.
	.module battle_turn
	.include "game.inc"
	.include "data.inc"

LINES = SCREEN_AT + 13 * COLUMNS + 1

	.area _CODE

; Both move, the faster one first, the player's where they are equal.
full_round::
	call	enemy_choose
	call	lines_begin
	call	player_mon
	ld	de,#MON_SPEED + 1
	add	hl,de
	ld	a,(wEnemyMonSpeed + 1)
	ld	b,a
	ld	a,(hl)
	cp	a,b
	jr	c,1$
	call	player_moves
	call	both_stand
	call	nz,enemy_moves
	jr	round_end
1$:	call	enemy_moves
	call	both_stand
	call	nz,player_moves
	jr	round_end

; Only the enemy moves.
enemy_round::
	call	enemy_choose
	call	lines_begin
	call	enemy_moves

; Show what has happened; see who has fallen.
round_end:
	call	battle_numbers
	ld	a,#TOP | MIDDLE
	call	ui_flush
	call	wait_more
	ld	a,(wEnemyMonHP + 1)
	or	a,a
	jp	z,enemy_falls
	call	player_mon
	inc	hl
	inc	hl
	ld	a,(hl)
	or	a,a
	ret	nz

; The player's fighter has fallen: the next one comes, or the battle is lost.
	call	player_mon
	ld	a,(hl)
	call	species_name
	call	string_set
	ld	hl,#text_falls
	call	text_say
	call	party_first
	jr	c,1$
	ld	(wPlayerMonNumber),a
	jp	battle_screen
1$:	ld	hl,#text_lost
	call	text_say
	ld	a,#LOST
	ld	(wIsInBattle),a
	jp	battle_end

; Z: one of the two has fallen.
both_stand:
	call	player_mon
	inc	hl
	inc	hl
	ld	a,(hl)
	or	a,a
	ret	z
	ld	a,(wEnemyMonHP + 1)
	or	a,a
	ret

; One of the enemy's moves, by chance.
enemy_choose:
	ld	hl,#wEnemyMonMoves
	ld	b,#0
1$:	ld	a,(hl+)
	or	a,a
	jr	z,2$
	inc	b
	bit	2,b
	jr	z,1$
2$:	ld	a,b
	call	random_below
	ld	hl,#wEnemyMonMoves
	call	add_hl_a
	ld	a,(hl)
	ld	(wEnemySelectedMove),a
	ret

; The next line is the first of an empty box.
lines_begin::
	call	battle_box
	ld	de,#LINES
	jr	line_at
; The line that begins at wBattleRow is done. DE = the next.
line_next::
	ld	hl,#wBattleRow
	ld	a,(hl+)
	ld	d,(hl)
	ld	e,a
	cp	a,#<(LINES + 3 * COLUMNS)	; the last line of the box is used again
	call	nz,line_down
line_at:
	ld	a,e
	ld	(wBattleRow),a
	ld	a,d
	ld	(wBattleRow + 1),a
	ret

player_moves:
	call	player_mon
	ld	de,#wEnemyMon
	ld	a,(wPlayerSelectedMove)
	jr	attack
enemy_moves:
	call	player_mon
	ld	d,h
	ld	e,l
	ld	hl,#wEnemyMon
	ld	a,(wEnemySelectedMove)

; The fighter at HL uses move A against the one at DE. Two lines say what comes of it.
attack:
	push	af
	ld	a,l
	ldh	(hAttacker),a
	ld	a,h
	ldh	(hAttacker + 1),a
	ld	a,e
	ldh	(hDefender),a
	ld	a,d
	ldh	(hDefender + 1),a
	ld	a,(hl)
	call	species_name
	ld	a,(wBattleRow)
	ld	e,a
	ld	a,(wBattleRow + 1)
	ld	d,a
	call	print
	ld	a,#TILE_COLON
	ld	(de),a
	inc	de
	pop	af
	push	af
	call	move_name
	call	print
	call	line_next
	inc	de
	pop	af
	call	move_at
	inc	hl
	inc	hl
	call	random
	cp	a,(hl)			; accuracy
	dec	hl
	dec	hl
	jr	nc,2$
	ld	a,(hl+)			; type
	ld	b,a
	ld	a,(hl)			; power, 0: it heals
	or	a,a
	jr	z,3$
	ld	c,a
	push	de
	call	damage
	pop	de
	ld	a,#TILE_MINUS
	ld	(de),a
	inc	de
	ld	a,(wDamage)
	push	af
	call	print_number
	inc	de
	ldh	a,(hTemp)		; how well the type does: 2 is plainly
	ld	hl,#str_none
	or	a,a
	jr	z,1$
	ld	hl,#str_weak
	cp	a,#2
	jr	c,1$
	ld	hl,#str_strong
	jr	nz,1$
	ld	hl,#str_plain
1$:	call	print
	ldh	a,(hDefender)
	ld	l,a
	ldh	a,(hDefender + 1)
	ld	h,a
	inc	hl
	inc	hl
	pop	af
	ld	b,a
	ld	a,(hl)
	sub	a,b
	jr	nc,4$
	xor	a,a
4$:	ld	(hl),a
	jp	line_next
2$:	ld	hl,#str_missed
	call	print
	jp	line_next
3$:	ldh	a,(hAttacker)
	ld	l,a
	ldh	a,(hAttacker + 1)
	ld	h,a
	push	hl
	ld	bc,#MON_MAXHP + 1
	add	hl,bc
	ld	a,(hl)
	srl	a
	pop	hl
	push	de
	call	mon_heal
	pop	de
	ld	hl,#str_heals
	call	print
	jp	line_next

; wDamage of a move of type B, power C: (level * 2 / 5 + 2) * power * attack / defense / 32 + 2, half as much again if it
; is of the attacker's own type, by how the types go together, and up to 6 % less by chance. hTemp = the types' factor
; in halves: 0, 1, 2, 4.
damage:
	push	bc
	ld	de,#MON_LEVEL
	call	of_attacker
	add	a,a
	ld	l,a
	ld	h,#0
	ld	c,#5
	call	divide
	inc	hl
	inc	hl
	pop	bc
	push	bc
	ld	a,c
	call	multiply
	srl	h			; / 8, so that the rest has 16 bits
	rr	l
	srl	h
	rr	l
	srl	h
	rr	l
	push	hl
	ld	de,#MON_ATTACK + 1
	call	of_attacker
	pop	hl
	call	multiply
	push	hl
	ld	de,#MON_DEFENSE + 1
	call	of_defender
	pop	hl
	ld	c,a
	call	divide
	srl	h			; / 4
	rr	l
	srl	h
	rr	l
	inc	hl
	inc	hl
	pop	bc
	push	hl
	ld	de,#MON_TYPE1
	call	of_attacker
	cp	a,b
	jr	z,1$
	ld	de,#MON_TYPE2
	call	of_attacker
	cp	a,b
1$:	pop	hl
	jr	nz,2$
	ld	d,h
	ld	e,l
	srl	d
	rr	e
	add	hl,de
2$:	push	hl
	ld	de,#MON_TYPE1
	call	of_defender
	call	factor
	ldh	(hTemp),a
	ld	de,#MON_TYPE2
	call	of_defender
	push	af
	ld	de,#MON_TYPE1
	call	of_defender
	ld	c,a
	pop	af
	cp	a,c
	jr	z,3$			; only one type
	call	factor
	ld	l,a
	ld	h,#0
	ldh	a,(hTemp)
	call	multiply
	ld	a,l			; halves of halves, at least one where there is something
	or	a,a
	jr	z,6$
	srl	a
	jr	nz,6$
	inc	a
6$:	ldh	(hTemp),a
3$:	pop	hl
	ldh	a,(hTemp)
	call	multiply
	srl	h
	rr	l
	ld	a,h
	or	a,a
	jr	z,4$
	ld	l,#255
4$:	ld	h,#0
	call	random
	or	a,#0xF0
	call	multiply
	ld	a,h
	or	a,a
	jr	nz,5$
	ldh	a,(hTemp)		; at least 1 where the type does anything
	or	a,a
	jr	z,5$
	ld	a,#1
5$:	ld	(wDamage),a
	ret

; A = the byte DE of the attacker, of the defender. Keeps BC.
of_attacker:
	ldh	a,(hAttacker)
	ld	l,a
	ldh	a,(hAttacker + 1)
	jr	of
of_defender:
	ldh	a,(hDefender)
	ld	l,a
	ldh	a,(hDefender + 1)
of:
	ld	h,a
	add	hl,de
	ld	a,(hl)
	ret

; A = the factor of a move of type B against type A, in halves. Keeps BC.
factor:
	push	bc
	push	af
	ld	a,b
	ld	l,a
	ld	h,#0
	ld	a,#TYPE_COUNT
	call	multiply
	ld	de,#type_chart
	add	hl,de
	pop	af
	call	add_hl_a
	ld	a,(hl)
	pop	bc
	ret

; HL = the data of move A; HL = the name of type A. Keep BC, DE.
move_at::
	push	de
	ld	l,a
	ld	h,#0
	add	hl,hl
	add	hl,hl
	ld	de,#move_table
	add	hl,de
	pop	de
	ret
type_name::
	push	de
	ld	l,a
	ld	h,#0
	add	hl,hl
	add	hl,hl
	add	hl,hl
	ld	de,#type_names
	add	hl,de
	pop	de
	ret
