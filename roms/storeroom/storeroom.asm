; STOREROOM: push each box to a mark. A room is made backwards, from the solved one by pulling, so that it can be solved.
	.module storeroom
	.include "hardware.inc"
	.include "art.inc"

BOXES   = 2
PILLARS = 4
ROW     = 0x10				; from a cell of `room` to the one below it
ROW_UP  = 0xF0
LEFT    = 0xFF				; and to the one on the left
RIGHT   = 0x01
FLOOR_CELL = 0				; kinds of cells; a kind's first tile is 4 times it
MARK_CELL  = 1
WALL_CELL  = 2
BOX_CELL   = 3
STORED_CELL = 4				; a box on a mark
ROUNDS  = 128				; of the walk backwards, until no box is on a mark,
TRIES   = 8				; at most so many times; then another room is made
MOVE_FRAMES = 8				; of two pixels each
BOX_SPRITES = 0xC008			; in OAM's shadow
TEXT_ROW = WINDOW_MAP + 32
DARK_PALETTE = 0x1B			; of the window

	.area _CODE
; Called with the LCD off.
game_begin::
	ld	a,#WINDOW_TOP
	ldh	(h_lyc),a
	xor	a,a
	ld	(moving),a
	ld	(pushing),a
	call	make_room
	ld	hl,#room
1$:	push	hl
	call	cell_map
	ld	a,(hl)
	add	a,a
	add	a,a
	ld	(de),a
	inc	de
	inc	a
	ld	(de),a
	ld	hl,#31
	add	hl,de
	inc	a
	ld	(hl+),a
	inc	a
	ld	(hl),a
	pop	hl
	inc	hl
	ld	a,l
	cp	a,#<room_end
	jr	nz,1$
	ld	hl,#WINDOW_MAP
	ld	b,#20
	ld	a,#RULE
2$:	ld	(hl+),a
	dec	b
	jr	nz,2$
	ld	hl,#text_left
	ld	de,#TEXT_ROW
3$:	ld	a,(hl+)
	or	a,a
	jr	z,4$
	ld	(de),a
	inc	de
	jr	3$
4$:	ld	a,(keeper)		; her place in pixels, as OAM has it
	ld	b,a
	and	a,#0xF0
	add	a,#16
	ld	(keeper_py),a
	ld	a,b
	swap	a
	and	a,#0xF0
	add	a,#8
	ld	(keeper_px),a
	call	clear_sprites
	jp	draw_keeper

; DE = the place of cell HL in the background map.
cell_map:
	ld	a,l
	and	a,#0x0F			; room begins at a multiple of 256
	add	a,a
	ld	e,a
	ld	a,l
	and	a,#0x30			; two bits of the row are in the low byte
	add	a,a
	add	a,a
	or	a,e
	ld	e,a
	ld	a,l
	and	a,#0x40
	swap	a
	rrca
	rrca
	add	a,#>MAP
	ld	d,a
	ret

; A new room in `room`, from chance.
make_room:
	ld	hl,#room
1$:	ld	b,#WALL_CELL
	ld	a,l			; floor in rows 1 to 6, columns 1 to 8
	and	a,#0x70
	jr	z,2$
	cp	a,#0x70
	jr	z,2$
	ld	a,l
	and	a,#0x0F
	jr	z,2$
	cp	a,#9
	jr	nc,2$
	ld	b,#FLOOR_CELL
2$:	ld	(hl),b
	inc	hl
	ld	a,l
	cp	a,#<room_end
	jr	nz,1$
	ld	c,#PILLARS
3$:	call	inner_cell
	ld	(hl),#WALL_CELL
	dec	c
	jr	nz,3$
	ld	c,#BOXES
4$:	call	inner_cell		; a box along the wall could not be pulled off it: marks are inside, too
	ld	a,(hl)
	or	a,a
	jr	nz,4$
	ld	(hl),#STORED_CELL
	dec	c
	jr	nz,4$
5$:	call	inner_cell
	ld	a,(hl)
	or	a,a
	jr	nz,5$
	ld	a,l
	ld	(keeper),a
	ld	a,#BOXES
	ld	(boxes_left),a
	ld	d,#TRIES
6$:	ld	b,#ROUNDS
7$:	call	walk_back
	dec	b
	jr	nz,7$
	call	count_stored
	ret	z
	dec	d
	jr	nz,6$
	jr	make_room

; HL = a cell of columns 2 to 7, rows 2 to 5. Changes B.
inner_cell:
	ld	b,#6
	call	random_below
	add	a,#0x22
	ld	e,a
	call	random
	and	a,#0x03
	swap	a
	add	a,e
	ld	l,a
	ld	h,#>room
	ret

; One step of the keeper backwards, pulling the box that she faces. Keeps B and D.
walk_back:
	call	random
	and	a,#0x03
	ld	hl,#directions
	add	a,l
	ld	l,a
	jr	nc,1$
	inc	h
1$:	ld	c,(hl)			; where she faces
	ld	a,(keeper)
	ld	e,a
	sub	a,c
	ld	l,a
	ld	h,#>room
	ld	a,(hl)
	cp	a,#WALL_CELL
	ret	nc			; something is behind her
	ld	a,l
	ld	(keeper),a
	ld	a,e
	add	a,c
	ld	l,a
	ld	a,(hl)
	cp	a,#BOX_CELL
	ret	c
	sub	a,#BOX_CELL		; the box leaves floor or mark, and comes to hers
	ld	(hl),a
	ld	l,e
	ld	a,(hl)
	add	a,#BOX_CELL
	ld	(hl),a
	ret

; Z: no box is on a mark. Keeps D.
count_stored:
	ld	hl,#room
1$:	ld	a,(hl+)
	cp	a,#STORED_CELL
	jr	z,2$
	ld	a,l
	cp	a,#<room_end
	jr	nz,1$
	ret
2$:	or	a,a
	ret

game_frame::
	ld	a,(moving)
	or	a,a
	jr	nz,move_frame
	ldh	a,(h_keys_new)
	and	a,#KEY_SELECT
	jp	nz,again
	ldh	a,(h_keys_new)
	ld	c,#ROW
	bit	7,a
	jr	nz,begin_move
	ld	c,#ROW_UP
	bit	6,a
	jr	nz,begin_move
	ld	c,#LEFT
	bit	5,a
	jr	nz,begin_move
	ld	c,#RIGHT
	bit	4,a
	ret	z

; Begin a move in direction C, if nothing is in the way.
begin_move:
	ld	h,#>room
	ld	a,(keeper)
	add	a,c
	ld	l,a
	ld	a,(hl)
	cp	a,#WALL_CELL
	ret	z
	jr	c,2$
	push	hl			; a box
	ld	a,l
	add	a,c
	ld	l,a
	ld	a,(hl)
	cp	a,#WALL_CELL
	jr	c,1$
	pop	hl
	ret
1$:	add	a,#BOX_CELL
	ld	(hl),a
	pop	hl
	ld	a,(hl)
	sub	a,#BOX_CELL
	ld	(hl),a
	call	queue_cell
	ld	a,#1
	ld	(pushing),a
2$:	ld	a,l
	ld	(keeper),a
	ld	a,c
	ld	(direction),a
	ld	a,#MOVE_FRAMES
	ld	(moving),a

; Two pixels of a move.
move_frame:
	ld	a,(direction)
	ld	c,a
	ld	hl,#keeper_px
	ld	b,#2
	cp	a,#RIGHT
	jr	z,1$
	ld	b,#0xFE
	cp	a,#LEFT
	jr	z,1$
	inc	hl			; keeper_py
	cp	a,#ROW
	jr	nz,1$
	ld	b,#2
1$:	ld	a,(hl)
	add	a,b
	ld	(hl),a
	call	draw_keeper
	ld	a,(direction)
	ld	c,a
	ld	hl,#moving
	dec	(hl)
	ld	a,(pushing)
	jr	z,2$
	or	a,a
	ret	z
	jp	draw_box
2$:	or	a,a
	ret	z
	xor	a,a			; the move is over: the box is a cell again
	ld	(pushing),a
	ld	hl,#BOX_SPRITES
	ld	(hl),a
	ld	hl,#BOX_SPRITES + 4
	ld	(hl),a
	ld	a,(keeper)
	add	a,c
	ld	l,a
	ld	h,#>room
	call	queue_cell
	ld	b,#0			; boxes that are on no mark
	ld	hl,#room
3$:	ld	a,(hl+)
	cp	a,#BOX_CELL
	jr	nz,4$
	inc	b
4$:	ld	a,l
	cp	a,#<room_end
	jr	nz,3$
	ld	a,b
	ld	(boxes_left),a
	add	a,#FONT_0
	ld	de,#TEXT_ROW + 12
	call	queue_tile
	ld	a,b
	or	a,a
	ret	nz
	ld	a,#WON
	ld	(game_state),a
	ld	hl,#text_won
	ld	de,#TEXT_ROW
	jp	queue_text

; SELECT: the same room from its start.
again:
	call	lcd_off
	call	random_seed
	call	game_begin
	jp	lcd_on

; The four tiles of cell HL, at the next VBlank. Keeps HL and C.
queue_cell:
	push	hl
	call	cell_map
	ld	a,(hl)
	add	a,a
	add	a,a
	call	queue_tile
	inc	de
	inc	a
	call	queue_tile
	ld	hl,#31
	add	hl,de
	ld	d,h
	ld	e,l
	inc	a
	call	queue_tile
	inc	de
	inc	a
	call	queue_tile
	pop	hl
	ret

draw_keeper:
	ld	a,(keeper_px)
	ld	c,a
	ld	a,(keeper_py)
	ld	b,a
	ld	d,#KEEPER
	ld	hl,#shadow_oam
	jp	sprite_put

; The box that is pushed, a cell in front of her.
draw_box:
	ld	a,(keeper_py)
	ld	b,a
	ld	a,(keeper_px)
	ld	d,a
	ld	a,c
	cp	a,#RIGHT
	jr	z,1$
	cp	a,#LEFT
	jr	z,2$
	add	a,b			; 16 lines up or down, as ROW is
	ld	b,a
	ld	c,d
	jr	3$
1$:	ld	a,d
	add	a,#16
	ld	c,a
	jr	3$
2$:	ld	a,d
	sub	a,#16
	ld	c,a
3$:	ld	d,#BOX_SPRITE
	ld	hl,#BOX_SPRITES
	jp	sprite_put

; LY = LYC: the window is white on black.
stat::
	push	af
	ld	a,#DARK_PALETTE
	ldh	(BGP),a
	pop	af
	reti

directions:
	.db	RIGHT, LEFT, ROW, ROW_UP

text_left:
	TEXT_LEFT
text_won:
	TEXT_WON

	.area _WRAM
keeper::	.ds 1			; her cell: 16 times the row, and the column
boxes_left::	.ds 1			; boxes that are on no mark
keeper_px::	.ds 1			; her place in OAM
keeper_py::	.ds 1
moving::	.ds 1			; frames left of a move
direction::	.ds 1			; of it: from a cell to the next
pushing::	.ds 1			; 1: a box moves with her

; The room, 16 cells a row; page-aligned
room      = 0xC200
room_end  = 0xC280
