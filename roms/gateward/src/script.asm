; Scripts: what people say and do. A script is a row of commands in the bank of its map; HL walks along it.
	.module script
	.include "game.inc"
	.include "data.inc"

	.area _CODE

; Run the script at HL. Afterwards objects are anew, as events may have moved them.
script_run::
	xor	a,a
	ld	(wScriptOver),a
	call	1$
	call	box_close
	call	objects_load
	jp	sprites_draw
1$:	ld	a,(wScriptOver)
	or	a,a
	ret	nz
	ld	a,(hl+)
	or	a,a
	ret	z
	ld	de,#1$
	push	de
	ld	d,h
	ld	e,l
	ld	hl,#commands - 2
	add	a,a
	call	add_hl_a
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	push	hl
	ld	h,d
	ld	l,e
	ret				; to the command, which returns to 1$

commands:
	.dw	op_say, op_show, op_ask, op_goto, op_if_event, op_set, op_clear, op_give, op_take, op_if_item
	.dw	op_fighter, op_heal, op_shop, op_battle, op_badge, op_warp, op_rest, op_money, op_if_badges, op_win
	.dw	op_back, op_pay, op_if_party, op_if_full

op_say:
	jp	text_say
op_show:
	jp	text_show
op_ask:
	push	hl
	call	ask
	pop	hl
	jp	nz,op_goto		; no
	jp	skip
op_goto:
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ret
op_if_event:
	ld	a,(hl+)
	call	event_test
	jp	nz,op_goto
skip:
	inc	hl
	inc	hl
	ret
op_set:
	ld	a,(hl+)
	jp	event_set
op_clear:
	ld	a,(hl+)
	jp	event_clear
op_give:				; item, number
	ld	a,(hl+)
	ld	b,(hl)
	inc	hl
	push	hl
	push	af
	call	bag_add
	pop	af
	call	item_name
	call	string_set
	pop	hl
	ret
op_take:
	ld	a,(hl+)
	push	hl
	call	bag_take
	pop	hl
	ret
op_if_item:
	ld	a,(hl+)
	push	hl
	call	bag_find
	pop	hl
	jp	nc,op_goto
	jp	skip
op_fighter:				; species, level
	ld	a,(hl+)
	ld	b,(hl)
	inc	hl
	push	hl
	push	af
	call	mon_make
	pop	af
	call	species_name
	call	string_set
	call	party_add
	pop	hl
	ret
op_heal:
	push	hl
	call	party_heal
	pop	hl
	ret
op_shop:				; how many items, the items
	push	hl
	call	shop_run
	pop	hl
	ld	a,(hl+)
	jp	add_hl_a
op_battle:				; trainer
	ld	a,(hl+)
	push	hl
	call	battle_trainer
	pop	hl
	ret
op_badge:
	ld	a,(hl+)			; a mask
	ld	b,a
	ld	a,(wObtainedBadges)
	or	a,b
	ld	(wObtainedBadges),a
	ret
op_warp:				; map, column, row
	ld	a,(hl+)
	ld	(wCurMap),a
	ld	a,(hl+)
	ld	(wXCoord),a
	ld	a,(hl)
	ld	(wYCoord),a
	call	box_close
	call	map_enter
	ld	a,#1
	ld	(wScriptOver),a
	ret
op_rest:				; here one wakes up after a lost battle
	ld	a,(wCurMap)
	ld	(wLastBlackoutMap),a
	ld	a,(wXCoord)
	ld	(wLastBlackoutX),a
	ld	a,(wYCoord)
	ld	(wLastBlackoutY),a
	ret
op_money:
	push	hl
	call	money_add
	pop	hl
	inc	hl
	jp	skip
op_if_badges:				; number, where to go with at least as many
	ld	a,(wObtainedBadges)
	ld	b,#0
1$:	or	a,a
	jr	z,3$
	add	a,a
	jr	nc,1$
	inc	b
	jr	1$
3$:	ld	a,b
	cp	a,(hl)
	inc	hl
	jp	nc,op_goto
	jp	skip
op_win:
	jp	game_won
op_back:
	push	hl
	call	box_close
	call	player_back
	pop	hl
	ret
op_pay:					; three bytes, where to go without so much
	push	hl
	call	money_pay
	pop	hl
	inc	hl
	inc	hl
	inc	hl
	jp	c,op_goto
	jp	skip
op_if_party:
	ld	a,(wPartyCount)
	or	a,a
	jp	nz,op_goto
	jp	skip
op_if_full:
	ld	a,(wPartyCount)
	cp	a,#PARTY_LENGTH
	jp	z,op_goto
	jp	skip
