; The quest: what button A finds in front of the player, and the three flags that remember
; how far the errand is. Flags are only ever set, so each can be rewarded once.
	.module quest
	.include "hardware.inc"
	.include "data.inc"

HUD_X = 160 - 16 - 4			; the card in the upper right corner
HUD_Y = 4

	.area _CODE

; A or START is down while the player stands. A = which.
player_act::
	and	a,#KEY_A
	jr	nz,read_ahead
	ld	a,(quest_flags)		; there is no menu before there is a satchel
	and	a,#HAS_SATCHEL
	ret	z
	jp	menu_show

; Talk to the villager or read the sign in front of the player, if any is there.
read_ahead:
	call	player_ahead
	call	villager_at
	jr	z,talk
	ld	hl,#map_signs
	ld	a,(hl+)
	ld	h,(hl)
	ld	l,a
1$:	ld	a,(hl+)			; column, row, text, event
	cp	a,#0xFF
	ret	z			; end of the list
	ld	d,a
	ld	a,(hl+)
	cp	a,c
	jr	nz,2$
	ld	a,d
	cp	a,b
	jr	z,read_sign
2$:	inc	hl
	inc	hl
	inc	hl
	jr	1$

; HL = text and event of the sign.
read_sign:
	ld	a,(hl+)
	ld	e,a
	ld	a,(hl+)
	ld	d,a
	ld	a,(hl)
	ld	h,d
	ld	l,e
	or	a,a			; event: 0 none, 1 the satchel, 2 the parcel
	jp	z,text_show
	dec	a
	jr	nz,event_parcel
	ld	b,#HAS_SATCHEL
	jr	set_flag

; The table with the parcel: HL is the text of the bare table.
event_parcel:
	ld	a,(quest_flags)
	bit	1,a			; TOOK_PARCEL
	jp	nz,text_show
	ld	hl,#text_parcel_no_bag
	rrca				; HAS_SATCHEL
	jp	nc,text_show
	ld	hl,#text_parcel
	ld	b,#TOOK_PARCEL

; Set flag B and show text HL.
set_flag:
	ld	a,(quest_flags)
	or	a,b
	ld	(quest_flags),a
	push	hl
	call	quest_draw
	pop	hl
	jp	text_show

; She turns to the player; while she walks she has no time.
talk:
	ld	a,(npc_left)
	or	a,a
	ret	nz
	ld	a,(player_facing)
	xor	a,#1			; the opposite direction
	ld	(npc_facing),a
	call	villager_draw
	ld	hl,#text_villager
	jp	text_show

; Called when a map has been entered through a door: the parcel's way home ends here.
quest_arrive::
	ld	a,(player_map)
	cp	a,#MAP_HOUSE
	ret	nz
	ld	a,(quest_flags)
	cp	a,#HAS_SATCHEL | TOOK_PARCEL
	ret	nz
	ld	b,#DELIVERED
	ld	hl,#text_delivered
	jr	set_flag

; Z: the parcel is in the satchel.
carrying::
	ld	a,(quest_flags)
	and	a,#TOOK_PARCEL | DELIVERED
	cp	a,#TOOK_PARCEL
	ret

; Put the card of what the player has, and the parcel where it lies, into OAM's shadow.
quest_draw::
	ld	hl,#OAM_HUD
	ld	a,(quest_flags)
	or	a,a
	jr	z,1$
	ld	de,#(SATCHEL_CARD_TILE << 8)
	call	carrying
	jr	nz,2$
	ld	d,#PARCEL_CARD_TILE
2$:	ld	bc,#((HUD_Y + 16) << 8) | (HUD_X + 8)
	call	sprite_put
	jr	3$
1$:	call	sprite_hide
3$:	ld	hl,#OAM_PARCEL
	ld	bc,#((PARCEL_COTTAGE_Y * 16 + 16 - 6) << 8) | (PARCEL_COTTAGE_X * 16 + 8)
	ld	a,(quest_flags)
	ld	e,a
	ld	a,(player_map)
	cp	a,#MAP_COTTAGE
	jr	nz,4$
	bit	1,e			; TOOK_PARCEL
	jp	nz,sprite_hide
	jr	5$
4$:	cp	a,#MAP_HOUSE
	jp	nz,sprite_hide
	bit	2,e			; DELIVERED
	jp	z,sprite_hide
	ld	bc,#((PARCEL_HOUSE_Y * 16 + 16 - 6) << 8) | (PARCEL_HOUSE_X * 16 + 8)
5$:	ld	de,#(PARCEL_TILE << 8)
	jp	sprite_put
