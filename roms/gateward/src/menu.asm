; The menu behind START: team, bag, card, save; and the shops.
	.module menu
	.include "game.inc"
	.include "data.inc"

ROW_1 = SCREEN_AT + COLUMNS + 1

	.area _CODE

; START in the world.
start_menu::
	ld	a,#3
	ld	(wTextBoxOpen),a
	call	screen_clear
	ld	de,#wTileMap
	ld	bc,#(12 << 8) | 12
	call	frame_draw
	ld	hl,#str_menu
	ld	de,#ROW_1 + COLUMNS + 2
	ld	b,#5
1$:	push	bc
	push	de
	call	print
	pop	de
	ld	a,e
	add	a,#2 * COLUMNS
	ld	e,a
	jr	nc,2$
	inc	d
2$:	pop	bc
	dec	b
	jr	nz,1$
	call	full_open
	ld	hl,#ROW_1 + COLUMNS + 1
	ld	bc,#(5 << 8) | (2 * COLUMNS)
	ld	a,#TOP | MIDDLE
	call	menu_set
	call	menu_run
	jp	c,full_close
	or	a,a
	jr	z,team
	dec	a
	jr	z,bag
	dec	a
	jp	z,card
	dec	a
	jp	nz,full_close
	call	save_write
	ld	hl,#text_saved
	call	text_say
	jp	full_close

; The team; A on a fighter makes it the first.
team:
	call	team_choose
	jp	c,full_close
	call	party_swap
	jp	full_close

; The bag; A uses what can be used.
bag:
	call	bag_choose
	jp	c,full_close
	call	item_use
	jp	full_close

; Show the team and let the player choose. A = which; carry: none.
team_choose::
	call	screen_clear
	ld	a,(wPartyCount)
	or	a,a
	scf
	ret	z
	ld	b,a
	ld	hl,#wPartyMons
	ld	de,#ROW_1 + 1
1$:	push	bc
	push	hl
	push	de
	call	team_row
	pop	de
	ld	a,e
	add	a,#3 * COLUMNS
	ld	e,a
	jr	nc,2$
	inc	d
2$:	pop	hl
	ld	a,#MON_SIZE
	call	add_hl_a
	pop	bc
	dec	b
	jr	nz,1$
	call	full_open
	ld	hl,#ROW_1
	ld	a,(wPartyCount)
	ld	b,a
	ld	c,#3 * COLUMNS
	ld	a,#ALL
	call	menu_set
	jp	menu_run

; Name and level of the fighter at HL to DE; a bar and its HP below.
team_row:
	push	de
	push	hl
	ld	a,(hl)
	call	species_name
	call	print
	pop	hl
	pop	de
	push	de
	push	hl
	ld	a,e
	add	a,#11
	ld	e,a
	jr	nc,1$
	inc	d
1$:	ld	bc,#MON_LEVEL
	add	hl,bc
	ld	a,(hl)
	call	print_level
	pop	hl
	pop	de
	ld	a,e
	add	a,#COLUMNS + 1
	ld	e,a
	jr	nc,2$
	inc	d
2$:

; A bar and the HP of the fighter at HL to DE.
print_hp::
	push	hl
	ld	bc,#MON_MAXHP + 1
	add	hl,bc
	ld	b,(hl)
	pop	hl
	inc	hl
	inc	hl
	ld	a,(hl)
	push	bc
	push	af
	call	print_bar
	inc	de
	pop	af
	call	print_number
	ld	a,#TILE_SLASH
	ld	(de),a
	inc	de
	pop	af			; B of above
	jp	print_number

; "LV" and A to DE.
print_level::
	push	af
	ld	hl,#str_level
	call	print
	pop	af
	jp	print_number

; Show the bag and let the player choose. A = the item; carry: none.
bag_choose::
	call	screen_clear
	ld	a,(wNumBagItems)
	or	a,a
	jr	nz,1$
	ld	hl,#str_empty
	ld	de,#ROW_1 + 1
	call	print
	call	full_open
	call	wait_button
	scf
	ret
1$:	ld	hl,#wBagItems
	ld	de,#ROW_1 + 1
2$:	ld	a,(hl+)
	cp	a,#0xFF
	jr	z,4$
	push	de
	push	hl
	call	item_name
	call	print
	pop	hl
	pop	de
	push	de
	ld	a,e
	add	a,#14
	ld	e,a
	jr	nc,3$
	inc	d
3$:	ld	a,(hl+)
	push	hl
	call	print_number
	pop	hl
	pop	de
	call	row_next
	jr	2$
4$:	call	full_open
	ld	hl,#ROW_1
	ld	a,(wNumBagItems)
	ld	b,a
	ld	c,#COLUMNS
	ld	a,#ALL
	call	menu_set
	call	menu_run
	ret	c
	add	a,a
	ld	hl,#wBagItems
	call	add_hl_a
	ld	a,(hl)
	or	a,a
	ret

row_next:
	ld	a,e
	add	a,#COLUMNS
	ld	e,a
	ret	nc
	inc	d
	ret

; Use item A outside of a battle.
item_use:
	ld	c,a
	call	item_at
	ld	a,#ITEM_KIND
	call	add_hl_a
	ld	a,(hl+)
	ld	b,(hl)			; how strong
	cp	a,#KIND_HEAL
	jr	z,1$
	cp	a,#KIND_SALVE
	jr	z,2$
	cp	a,#KIND_THREAD
	jr	z,3$
	ld	hl,#text_no_use
	jp	text_say
1$:	push	bc
	call	team_choose
	pop	bc
	ret	c
	call	mon_at
	inc	hl
	inc	hl
	ld	a,(hl-)
	dec	hl
	or	a,a
	ret	z			; it cannot be woken like that
	push	bc
	ld	a,b
	call	mon_heal
	pop	bc
	ld	a,c
	jp	bag_take
2$:	ld	a,b
	ld	(wRepelRemainingSteps),a
	ld	a,c
	jp	bag_take
3$:	ld	a,c
	call	bag_take
	jp	go_rest

; What has been won so far, and the money.
card:
	call	screen_clear
	ld	hl,#str_money
	ld	de,#ROW_1 + COLUMNS
	call	print
	ld	hl,#wPlayerMoney
	ld	b,#3
	call	print_digits
	ld	hl,#str_gates
	ld	de,#ROW_1 + 3 * COLUMNS
	call	print
	ld	a,(wObtainedBadges)
	ld	b,#8
	ld	hl,#gate_names
	ld	de,#ROW_1 + 5 * COLUMNS
1$:	rrca
	push	af
	push	de
	ld	a,#TILE_GATE
	jr	c,2$
	ld	a,#TILE_NO_GATE
2$:	ld	(de),a
	inc	de
	inc	de
	push	bc
	call	print
	pop	bc
	pop	de
	call	row_next
	pop	af
	dec	b
	jr	nz,1$
	call	full_open
	call	wait_button
	jp	full_close

; A shop: HL = number of items, and the items.
shop_run::
	ld	a,l
	ld	(wShopItems),a
	ld	a,h
	ld	(wShopItems + 1),a
	ld	a,#3
	ld	(wTextBoxOpen),a
1$:	call	screen_clear
	ld	hl,#str_money
	ld	de,#ROW_1
	call	print
	ld	hl,#wPlayerMoney
	ld	b,#3
	call	print_digits
	ld	hl,#wShopItems
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	b,(hl)
	inc	hl
	ld	de,#ROW_1 + 2 * COLUMNS + 1
2$:	push	bc
	push	de
	ld	a,(hl+)
	push	hl
	call	item_at
	push	hl
	call	print
	pop	hl
	pop	bc			; HL of the list
	pop	de
	push	de
	push	bc
	ld	a,#ITEM_PRICE + 1
	call	add_hl_a
	ld	a,e
	add	a,#13
	ld	e,a
	jr	nc,3$
	inc	d
3$:	ld	b,#2
	call	print_digits
	pop	hl
	pop	de
	call	row_next
	pop	bc
	dec	b
	jr	nz,2$
	call	full_open
	ld	hl,#wShopItems
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	b,(hl)
	ld	hl,#ROW_1 + 2 * COLUMNS
	ld	c,#COLUMNS
	ld	a,#ALL
	call	menu_set
	call	menu_run
	jp	c,full_close
	ld	hl,#wShopItems
	ld	c,a
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
	ld	a,c
	inc	a
	call	add_hl_a
	ld	a,(hl)
	ld	c,a
	push	bc
	call	item_at
	ld	a,#ITEM_PRICE
	call	add_hl_a
	call	money_pay
	pop	bc
	jr	c,1$
	ld	a,c
	ld	b,#1
	call	bag_add
	jp	1$
