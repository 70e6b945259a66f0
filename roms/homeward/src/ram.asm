; All variables. Names that begin with h_ are in high RAM.
	.module ram

	.area _WRAM			; C000
shadow_oam::	.ds 160			; copied to OAM at every VBlank; page-aligned

; Place and movement of the player, in metatiles
player_map::	.ds 1
player_x::	.ds 1
player_y::	.ds 1
player_facing::	.ds 1			; DOWN UP LEFT RIGHT
step_left::	.ds 1			; frames left of this step, 0 = standing
quest_flags::	.ds 1			; HAS_SATCHEL, TOOK_PARCEL, DELIVERED
box_kind::	.ds 1			; the box on the screen: BOX_NONE, BOX_TEXT, BOX_MENU
npc_x::		.ds 1			; place of the villager, in metatiles
npc_y::		.ds 1
jump_left::	.ds 1			; frames left of a jump
step_dx::	.ds 1			; pixels a frame, of the player in the world
step_dy::	.ds 1
camera_dx::	.ds 1			; pixels a frame, of the camera
camera_dy::	.ds 1
step_foot::	.ds 1			; bit 0: which foot goes first
view_moved::	.ds 1			; not 0: the camera moved, sprites have to follow
player_px::	.ds 1			; pixel place in the world, modulo 256
player_py::	.ds 1
camera_x::	.ds 1			; metatile in the top left corner
camera_y::	.ds 1

; Header of the current map, copied from bank 2 (layout: world.py)
map_header::
map_width::	.ds 1
map_height::	.ds 1
map_cells::	.ds 2
map_metatiles::	.ds 2
map_attributes::.ds 2
map_tiles::	.ds 2
map_tile_count::.ds 1
map_warps::	.ds 2
map_signs::	.ds 2
map_unused::	.ds 1

; A row or column of metatiles, 4 tile numbers each
strip_step::	.ds 1			; from one cell to the next: 1 or the stride
strip_tiles::	.ds 40

; The villager, as the player above
npc_facing::	.ds 1
npc_left::	.ds 1
npc_foot::	.ds 1
npc_dx::	.ds 1
npc_dy::	.ds 1
npc_px::	.ds 1
npc_py::	.ds 1
npc_wait::	.ds 1			; frames until she walks again
rng::		.ds 1			; the last random number

; Boxes
box_rows::	.ds 1			; size in tiles
box_width::	.ds 1
choice::	.ds 1			; line that the cursor is at
box_tiles::	.ds 20			; tiles on their way to the window map

save_found::	.ds 1			; 1: the cartridge holds a save

	.area _HRAM			; FF80
h_dma::		.ds 12			; the OAM DMA routine
h_frame::	.ds 1			; set by the VBlank handler
h_keys::	.ds 1			; buttons held
h_keys_new::	.ds 1			; buttons that went down in this frame
h_scx::		.ds 1			; for SCX, SCY, BGP and OBP0 at the next VBlank
h_scy::		.ds 1
h_palette::	.ds 1
h_wx::		.ds 1			; for WX, WY with the next part of a box
h_wy::		.ds 1
h_strip::	.ds 1			; STRIP_NONE, or which kind of strip waits
h_strip_count::	.ds 1			; metatiles in it, or tiles of a box
h_strip_left::	.ds 1			; counter while it is written
h_strip_to::	.ds 2			; address in the background or window map
