; ORCHARD: catch the apples that fall, in a basket that LEFT and RIGHT move; a hailstone in the basket and an apple on the
; ground each cost one of three lives. All falls faster as the score rises; 32 apples are the harvest.
	.module orchard
	.include "hardware.inc"
	.include "art.inc"

GOAL      = 32				; apples
LIVES     = 3
LANES     = 9				; 16 pixels wide, the first at pixel 8
LEFT_END  = 8				; the basket's places
RIGHT_END = 136
BASKET_Y  = 96
CATCH_Y   = 84				; an item from here on falls into a basket below it,
GROUND_Y  = 104				; from here on it lies on the ground
CATCH_X   = 11				; pixels between an item and a basket that still catches it
ITEM_TOP  = 22
ITEMS     = 4
NONE = 0				; item_kind
APPLE = 1
HAIL  = 2

CLOUD_TOP = 32				; lines between which the clouds are scrolled
CLOUD_END = 64
GRASS_TOP = 112				; the line from which on the palette is darker
GRASS_PALETTE = 0xF8
TEXT_ROW  = WINDOW_MAP + 32

	.area _CODE
; Called with the LCD off.
game_begin::
	ld	hl,#field_screen
	ld	de,#MAP
	ld	c,#16
	call	draw_screen
	ld	hl,#WINDOW_MAP
	ld	b,#20
	ld	a,#RULE
1$:	ld	(hl+),a
	dec	b
	jr	nz,1$
	ld	hl,#text_score
	ld	de,#TEXT_ROW
2$:	ld	a,(hl+)
	or	a,a
	jr	z,3$
	ld	(de),a
	inc	de
	jr	2$
3$:	ld	hl,#score
	ld	b,#game_variables_end - score
	xor	a,a
4$:	ld	(hl+),a
	dec	b
	jr	nz,4$
	ld	a,#LIVES
	ld	(lives),a
	ld	a,#LEFT_END + 64
	ld	(basket_x),a
	ld	a,#4
	ld	(lane),a
	ld	a,#1
	ld	(spawn_wait),a
	ld	a,#CLOUD_TOP
	ldh	(h_lyc),a
	jr	draw

game_frame::
	call	move_basket
	call	drop_items
	call	spawn_item
draw:
	call	clear_sprites
	ld	hl,#shadow_oam
	ld	a,(basket_x)
	add	a,#8			; OAM's X and Y are of the lower right corner
	ld	c,a
	ld	b,#BASKET_Y + 16
	ld	d,#BASKET
	call	sprite_put
	ld	de,#items
	ld	b,#ITEMS
1$:	ld	a,(de)
	inc	de
	or	a,a
	jr	z,3$
	push	bc
	push	de
	cp	a,#APPLE
	ld	a,(de)
	inc	de
	jr	z,4$
	add	a,#8
	ld	c,a
	ld	a,(de)
	add	a,#16
	ld	b,a
	ld	d,#HAILSTONE
	jr	2$
4$:	add	a,#8
	ld	c,a
	ld	a,(de)
	add	a,#16
	ld	b,a
	ld	d,#APPLE_SPRITE
2$:	call	sprite_put
	pop	de
	pop	bc
3$:	inc	de
	inc	de
	inc	de
	dec	b
	jr	nz,1$
	ld	a,(basket_x)		; clouds far away
	srl	a
	srl	a
	ldh	(h_cloud),a
	ret

; Two pixels a frame while LEFT or RIGHT is held.
move_basket:
	ld	hl,#basket_x
	ldh	a,(h_keys)
	bit	5,a
	jr	z,1$
	ld	a,(hl)
	cp	a,#LEFT_END
	ret	z
	dec	(hl)
	dec	(hl)
	ret
1$:	bit	4,a
	ret	z
	ld	a,(hl)
	cp	a,#RIGHT_END
	ret	z
	inc	(hl)
	inc	(hl)
	ret

; All items fall, are caught or lost.
drop_items:
	ld	hl,#items
	ld	b,#ITEMS
1$:	push	bc
	push	hl
	ld	a,(hl+)
	or	a,a
	call	nz,drop_item
	pop	hl
	ld	de,#4
	add	hl,de
	pop	bc
	dec	b
	jr	nz,1$
	ret

; The item whose x is at HL, with its y in 1/256 pixels behind: whole pixels first.
drop_item:
	push	hl
	inc	hl
	inc	hl
	call	speed			; DE = 1/256 pixels a frame
	ld	a,(hl)
	add	a,e
	ld	(hl-),a
	ld	a,(hl)
	adc	a,d
	ld	(hl),a
	ld	b,a
	pop	hl
	ld	a,b
	cp	a,#CATCH_Y
	ret	c
	ld	a,(basket_x)
	sub	a,(hl)
	add	a,#CATCH_X
	cp	a,#2 * CATCH_X + 1
	jr	c,caught
	ld	a,b
	cp	a,#GROUND_Y
	ret	c
	dec	hl
	ld	a,(hl)
	ld	(hl),#NONE
	cp	a,#APPLE
	ret	nz
lose_life:
	ld	hl,#lives
	dec	(hl)
	ld	a,(hl)
	add	a,#<(TEXT_ROW + 15)
	ld	e,a
	ld	d,#>(TEXT_ROW + 15)
	ld	a,#FONT_SPACE
	call	queue_tile
	ld	a,(lives)
	or	a,a
	ret	nz
	ld	a,#LOST
	ld	hl,#text_lost
end_game:
	ld	(game_state),a
	ld	de,#TEXT_ROW
	jp	queue_text

caught:
	dec	hl
	ld	a,(hl)
	ld	(hl),#NONE
	cp	a,#HAIL
	jr	z,lose_life
	ld	hl,#score
	inc	(hl)
	ld	a,(hl)
	push	af
	ld	de,#TEXT_ROW + 6
	call	queue_number
	pop	af
	cp	a,#GOAL
	ret	nz
	ld	a,#WON
	ld	hl,#text_won
	jr	end_game

; DE = the speed of the score; keeps HL.
speed:
	push	hl
	call	level
	ld	hl,#speeds
	add	hl,de
	add	hl,de
	ld	e,(hl)
	inc	hl
	ld	d,(hl)
	pop	hl
	ret

; DE = 0 to 7, by the score.
level:
	ld	a,(score)
	srl	a
	srl	a
	ld	e,a
	ld	d,#0
	ret

; The next item, where it is due: in reach of the basket from where the last apple fell.
spawn_item:
	ld	hl,#spawn_wait
	dec	(hl)
	ret	nz
	call	level
	ld	hl,#waits
	add	hl,de
	ld	a,(hl)
	ld	(spawn_wait),a
	ld	a,(last_kind)
	ld	d,#APPLE
	cp	a,#APPLE
	jr	nz,1$			; no two hailstones in a row
	call	random
	and	a,#0x03
	jr	nz,1$
	ld	d,#HAIL
1$:	ld	a,d
	ld	(last_kind),a
	cp	a,#HAIL
	jr	z,3$
	ld	b,#5			; up to two lanes from the last apple
	call	random_below
	sub	a,#2
	ld	hl,#lane
	add	a,(hl)
	cp	a,#LANES
	jr	c,2$
	sub	a,(hl)			; the other way where there is none
	cpl
	inc	a
	add	a,(hl)
2$:	ld	(hl),a
	jr	4$
3$:	ld	b,#LANES - 3		; a hailstone at least two lanes from it
	call	random_below
	ld	hl,#lane
	add	a,(hl)
	add	a,#2
	cp	a,#LANES
	jr	c,4$
	sub	a,#LANES
4$:	swap	a
	add	a,#8
	ld	e,a
	ld	hl,#items
	ld	bc,#4
5$:	ld	a,(hl)			; a free place: never do four fall at once
	or	a,a
	jr	z,6$
	add	hl,bc
	jr	5$
6$:	ld	(hl),d
	inc	hl
	ld	(hl),e
	inc	hl
	ld	(hl),#ITEM_TOP
	inc	hl
	ld	(hl),#0
	ret

; LY = LYC: the clouds' scroll, its end, the grass.
stat::
	push	af
	ldh	a,(LYC)
	cp	a,#CLOUD_END
	jr	z,1$
	jr	nc,2$
	ldh	a,(h_cloud)
	ldh	(SCX),a
	ld	a,#CLOUD_END
	jr	3$
1$:	xor	a,a
	ldh	(SCX),a
	ld	a,#GRASS_TOP
	jr	3$
2$:	cp	a,#GRASS_TOP
	ld	a,#GRASS_PALETTE
	jr	z,4$
	ld	a,#PALETTE
	ldh	(BGP),a
	ld	a,#NO_LINE
	jr	3$
4$:	ldh	(BGP),a
	ld	a,#WINDOW_TOP
3$:	ldh	(LYC),a
	pop	af
	reti

; By level: 1/256 pixels a frame, and frames between two items
speeds:	.dw	0x0080, 0x00A0, 0x00C0, 0x00E0, 0x0100, 0x0120, 0x0140, 0x0160
waits:	.db	96, 90, 84, 78, 72, 68, 64, 60

text_score:
	TEXT_SCORE
text_lost:
	TEXT_LOST
text_won:
	TEXT_WON

	.area _WRAM
score::		.ds 1			; apples caught
lives::		.ds 1
basket_x::	.ds 1			; pixels from the left
lane::		.ds 1			; where the last apple fell
last_kind::	.ds 1			; APPLE, HAIL
spawn_wait::	.ds 1			; frames until the next item
items::		.ds ITEMS * 4		; kind, x, y, y in 1/256 pixels
game_variables_end::

	.area _HRAM
h_cloud::	.ds 1
