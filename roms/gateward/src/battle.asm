; Battles: how they begin, their rounds, and how they end.
	.module battle
	.include "game.inc"
	.include "data.inc"

BOX   = SCREEN_AT + 12 * COLUMNS
LINES = BOX + COLUMNS + 1

	.area _CODE

; A wild fighter of species A, level B.
battle_wild::
	call	mon_make
	call	enemy_take
	ld	a,#WILD
	ld	hl,#text_wild
	jr	battle_run

; Trainer A, who has one fighter after another.
battle_trainer::
	ld	(wTrainerNo),a
	call	trainer_at
	call	string_set
	inc	hl			; behind the name: three bytes of money
	inc	hl
	inc	hl
	ld	a,l
	ld	(wTrainerNext),a
	ld	a,h
	ld	(wTrainerNext + 1),a
	call	enemy_next
	ld	a,(wTrainerNo)
	call	trainer_at
	call	string_set
	ld	a,#TRAINER
	ld	hl,#text_challenge

; The battle: A = kind, HL = the text that opens it.
battle_run:
	ld	(wIsInBattle),a
	push	hl
	call	party_first
	jr	c,1$
	ld	(wPlayerMonNumber),a
	call	battle_screen
	pop	hl
	call	text_say
	xor	a,a
	ld	(wBattleOver),a
	ld	(wMoveChoice),a
2$:	call	round
	ld	a,(wBattleOver)
	or	a,a
	jr	z,2$
	ld	a,(wIsInBattle)
	cp	a,#LOST
	jr	z,blackout
	call	battle_leave
	xor	a,a
	ld	(wIsInBattle),a
	ret
1$:	pop	hl			; a party that cannot fight has lost
	ld	hl,#text_lost
	call	text_say
	call	box_close

; All fighters are down: half of the money is lost, and one wakes up at the last healing place.
blackout:
	ld	hl,#wBlackouts
	inc	(hl)
	call	money_halve
	call	party_heal
	xor	a,a
	ld	(wIsInBattle),a
	call	battle_close
go_rest::
	ld	a,(wLastBlackoutMap)
	ld	(wCurMap),a
	ld	a,(wLastBlackoutX)
	ld	(wXCoord),a
	ld	a,(wLastBlackoutY)
	ld	(wYCoord),a
	xor	a,a
	ldh	(hFullScreen),a
	ld	(wTextBoxOpen),a
	ld	a,#SCREEN_LINES
	ldh	(hWY),a
	ld	a,#1
	ld	(wScriptOver),a
	jp	map_enter

; HL = the record of trainer A.
trainer_at::
	ld	l,a
	ld	h,#0
	add	hl,hl
	ld	de,#trainer_table
	add	hl,de
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ret

; The trainer's next fighter; carry: there is none.
enemy_next::
	ld	hl,#wTrainerNext
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	a,(hl+)
	cp	a,#0xFF
	scf
	ret	z
	ld	b,(hl)
	inc	hl
	push	af
	ld	a,l
	ld	(wTrainerNext),a
	ld	a,h
	ld	(wTrainerNext + 1),a
	pop	af
	call	mon_make

; The new fighter is the enemy. No carry. wStringBuffer = its name.
enemy_take:
	ld	hl,#wNewMon
	ld	de,#wEnemyMon
	ld	bc,#MON_SIZE
	call	copy
	ld	a,(wEnemyMon)
	call	species_name
	call	string_set
	or	a,a
	ret

; What the player chooses, and what follows.
round:
	call	battle_box
	ld	hl,#str_battle_menu
	ld	de,#LINES + 2
	ld	b,#4
1$:	push	bc
	push	de
	call	print
	pop	de
	call	line_down
	pop	bc
	dec	b
	jr	nz,1$
	ld	hl,#LINES + 1
	ld	bc,#(4 << 8) | COLUMNS
	ld	a,#BOTTOM
	call	menu_set
2$:	call	menu_run
	jr	c,2$
	or	a,a
	jr	z,fight
	dec	a
	jp	z,use_item
	dec	a
	jp	z,change
	ld	a,(wIsInBattle)		; RUN
	cp	a,#WILD
	ld	hl,#text_no_run
	jp	nz,text_say
	call	random
	cp	a,#192
	jr	nc,run_failed
	ld	hl,#text_run
	call	text_say
battle_end::
	ld	a,#1
	ld	(wBattleOver),a
	ret
run_failed:
	ld	hl,#text_run_failed
	call	text_say
	jp	enemy_round

; FIGHT: choose a move. B leads back.
fight:
	call	battle_box
	call	player_mon
	ld	de,#MON_MOVES
	add	hl,de
	ld	de,#LINES + 2
	ld	c,#0
1$:	ld	a,(hl+)
	or	a,a
	jr	z,2$
	push	hl
	push	bc
	call	move_row
	pop	bc
	pop	hl
	inc	c
	bit	2,c			; four
	jr	z,1$
2$:	ld	b,c
	ld	c,#COLUMNS
	ld	hl,#LINES + 1
	ld	a,#BOTTOM
	call	menu_set
	ld	a,(wMoveChoice)
	cp	a,b
	jr	nc,3$
	ld	(wCurrentMenuItem),a
3$:	call	menu_run
	ret	c
	ld	(wMoveChoice),a
	call	player_mon
	add	a,#MON_MOVES
	call	add_hl_a
	ld	a,(hl)
	ld	(wPlayerSelectedMove),a
	jp	full_round

; Name and type of move A to DE, which moves a line down.
move_row:
	push	de
	push	af
	call	move_name
	call	print
	pop	af
	pop	de
	push	de
	ld	hl,#11
	add	hl,de
	ld	d,h
	ld	e,l
	call	move_at
	ld	a,(hl)
	call	type_name
	call	print
	pop	de
line_down::
	ld	a,e
	add	a,#COLUMNS
	ld	e,a
	ret	nc
	inc	d
	ret

; TEAM: another fighter comes, and the enemy has a move.
change:
	call	team_choose
	jr	c,3$
	ld	b,a
	ld	hl,#wPlayerMonNumber
	cp	a,(hl)
	jr	z,3$
	call	mon_at
	inc	hl
	inc	hl
	ld	a,(hl)
	or	a,a
	jr	z,3$
	ld	a,b
	ld	(wPlayerMonNumber),a
	call	battle_screen
	jp	enemy_round
3$:	call	battle_draw
	ld	a,#ALL
	jp	ui_flush

; BAG: heal the fighter, or throw a net at a wild one.
use_item:
	call	bag_choose
	jr	c,9$
	ld	c,a
	call	item_at
	ld	a,#ITEM_KIND
	call	add_hl_a
	ld	a,(hl+)
	ld	b,(hl)
	cp	a,#KIND_HEAL
	jr	z,1$
	cp	a,#KIND_NET
	jr	z,2$
9$:	call	battle_draw
	ld	a,#ALL
	jp	ui_flush
1$:	push	bc
	call	player_mon
	ld	a,b
	call	mon_heal
	pop	bc
	ld	a,c
	call	bag_take
	call	battle_draw
	ld	a,#ALL
	call	ui_flush
	jp	enemy_round
2$:	ld	a,(wIsInBattle)
	cp	a,#WILD
	jr	nz,9$
	ld	a,c
	call	bag_take
	call	battle_draw
	ld	a,#ALL
	call	ui_flush
	ld	a,(wPartyCount)
	cp	a,#PARTY_LENGTH
	ld	hl,#text_full
	jr	z,3$
	call	is_caught
	ld	hl,#text_missed
	jr	c,3$
	ld	hl,#wEnemyMon
	ld	de,#wNewMon
	ld	bc,#MON_SIZE
	call	copy
	call	party_add
	ld	a,(wEnemyMon)
	call	species_name
	call	string_set
	ld	hl,#text_caught
	call	text_say
	jp	battle_end
3$:	call	text_say
	jp	enemy_round

; No carry: the net holds. The chance is the species' own, and up to twice that for one that is weak.
is_caught:
	ld	a,(wEnemyMonSpecies)
	call	species_at
	ld	a,#SPECIES_CATCH
	call	add_hl_a
	ld	b,(hl)
	ld	a,(wEnemyMonMaxHP + 1)
	srl	a
	srl	a
	ld	c,a			; a quarter
	ld	a,(wEnemyMonHP + 1)
	cp	a,c
	jr	nc,1$
	sla	b
	jr	nc,1$
	ld	b,#255
1$:	call	random
	cp	a,b
	ccf
	ret

; HL = the fighter of the player that fights. Keeps A, BC, DE.
player_mon::
	push	af
	ld	a,(wPlayerMonNumber)
	call	mon_at
	pop	af
	ret
