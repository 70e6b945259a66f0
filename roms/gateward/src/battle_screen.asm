; What a battle shows: pictures, names, bars.
	.module battle_screen
	.include "game.inc"
	.include "data.inc"

ENEMY_PICTURE = SPARE_TILE		; their tiles, 25 each
OWN_PICTURE   = SPARE_TILE + 25
ENEMY_AT = COLUMNS + 14			; their places on the screen
OWN_AT   = 6 * COLUMNS + 2

	.area _CODE

; Load both pictures and show the battle.
battle_screen::
	call	lcd_off
	ld	a,(wEnemyMonSpecies)
	ld	b,#0
	ld	de,#0x8000 + ENEMY_PICTURE * 16
	call	load_picture
	call	player_mon
	ld	a,(hl)
	ld	b,#1
	ld	de,#0x8000 + OWN_PICTURE * 16
	call	load_picture
	ld	a,(wEnemyMonSpecies)
	call	palette_of
	ld	hl,#WINDOW_MAP + 32 + 14
	call	picture_palette
	call	player_mon
	ld	a,(hl)
	call	palette_of
	ld	hl,#WINDOW_MAP + 6 * 32 + 2
	call	picture_palette
	call	lcd_on
	call	battle_draw
	jp	full_open

palette_of:
	call	species_at
	ld	a,#SPECIES_PALETTE
	call	add_hl_a
	ld	a,(hl)
	ret

; Back to the world: no window, and its colours are those of boxes.
battle_leave::
	call	battle_close
	jp	full_close
battle_close::
	call	lcd_off
	xor	a,a
	call	window_palette
	call	map_tiles_load
	ld	a,#SCREEN_LINES
	ldh	(hWY),a
	jp	lcd_on

; An empty box in wTileMap.
battle_box::
	ld	de,#wTileMap + 12 * COLUMNS
	ld	bc,#(6 << 8) | COLUMNS
	jp	frame_draw

; The whole screen to wTileMap.
battle_draw::
	call	screen_clear
	call	battle_box
	ld	hl,#wTileMap + ENEMY_AT
	ld	a,#ENEMY_PICTURE
	ld	d,#1
	call	picture_put
	ld	hl,#wTileMap + OWN_AT + 4	; the mirrored one from the right
	ld	a,#OWN_PICTURE
	ld	d,#-1
	call	picture_put

; Names, levels and bars.
battle_numbers::
	ld	a,(wEnemyMonSpecies)
	call	species_name
	ld	de,#wTileMap + COLUMNS + 1
	call	print
	ld	de,#wTileMap + 2 * COLUMNS + 2
	ld	a,(wEnemyMonLevel)
	call	print_level
	ld	de,#wTileMap + 3 * COLUMNS + 2
	ld	a,(wEnemyMonMaxHP + 1)
	ld	b,a
	ld	a,(wEnemyMonHP + 1)
	call	print_bar
	call	player_mon
	push	hl
	ld	a,(hl)
	call	species_name
	ld	de,#wTileMap + 7 * COLUMNS + 9
	call	print
	pop	hl
	push	hl
	ld	de,#MON_LEVEL
	add	hl,de
	ld	a,(hl)
	ld	de,#wTileMap + 8 * COLUMNS + 10
	call	print_level
	pop	hl
	push	hl
	ld	de,#wTileMap + 10 * COLUMNS + 10	; numbers may have become shorter
	ld	a,#TILE_SPACE
	ld	b,#9
1$:	ld	(de),a
	inc	de
	dec	b
	jr	nz,1$
	inc	hl
	inc	hl
	ld	a,(hl)
	ld	de,#wTileMap + 10 * COLUMNS + 10
	call	print_number
	ld	a,#TILE_SLASH
	ld	(de),a
	inc	de
	pop	hl
	push	hl
	ld	bc,#MON_MAXHP + 1
	add	hl,bc
	ld	a,(hl)
	ld	b,a
	push	bc
	call	print_number
	pop	bc
	pop	hl
	inc	hl
	inc	hl
	ld	a,(hl)
	ld	de,#wTileMap + 9 * COLUMNS + 10
	jp	print_bar

; 25 tiles from number A on to HL, columns in direction D.
picture_put:
	ld	e,#5
1$:	push	hl
	ld	c,#5
2$:	ld	(hl),a
	inc	a
	bit	7,d
	jr	nz,3$
	inc	hl
	inc	hl
3$:	dec	hl
	dec	c
	jr	nz,2$
	pop	hl
	push	af
	ld	a,#COLUMNS
	call	add_hl_a
	pop	af
	dec	e
	jr	nz,1$
	ret
