; All variables. Those from wMainDataStart to wMainDataEnd are what a save has. Names that begin with h are in high RAM.
	.module ram
	.include "game.inc"

	.area _WRAM			; C000
shadow_oam::		.ds 160		; copied to OAM at every VBlank; page-aligned
wMapHeader::				; copied from the map's bank (layout: maps.py)
wCurMapWidth::		.ds 1
wCurMapHeight::		.ds 1
wMapCellsAt::		.ds 2		; addresses of what the map consists of
wMapQuads::		.ds 2
wMapAttributes::	.ds 2
wMapPalettes::		.ds 2
wMapTiles::		.ds 2
wMapTileCount::		.ds 1
wMapWarps::		.ds 2
wMapObjects::		.ds 2
wMapWild::		.ds 2
wMapEntry::		.ds 2		; script that runs on entering, or 0
wMapTriggers::		.ds 2
wMapBank::		.ds 1
			.ds 72		; up to the next page
wMapCells::		.ds 256		; metatile of each cell: row * 16 + column
wMapKinds::		.ds 256		; attribute of each cell
wTileMap::		.ds 360		; the screen as tiles, 20 a row: boxes, menus, battles

wObjectCount::		.ds 1
wObjects::		.ds OBJECT_LIMIT * OBJECT_SIZE
wStringBuffer::		.ds 12		; a name for a text, ended by 0
wTextColumn::		.ds 2		; where the line of a text begins
wTextRow::		.ds 1
wMenuAt::		.ds 2		; the first place of the cursor
wMenuStride::		.ds 1		; from one line to the next
wMenuCount::		.ds 1
wCurrentMenuItem::	.ds 1		; the line that the cursor is at
wMenuThirds::		.ds 1		; parts of the screen that it is in
wMenuOpen::		.ds 1		; 1 while a menu or a choice waits
wTextBoxOpen::		.ds 1		; 0 none, 1 a text, 2 a choice, 3 a menu
wShopItems::		.ds 2
wScriptOver::		.ds 1		; a battle was lost: the script ends
wPreviousX::		.ds 1		; where the last step came from
wPreviousY::		.ds 1

; Movement
wWalkCounter::		.ds 1		; frames left of this step, 0 = standing
wStepX::		.ds 1		; pixels a frame
wStepY::		.ds 1
wPixelX::		.ds 1		; place in the map
wPixelY::		.ds 1
wStepFoot::		.ds 1
wJumping::		.ds 1		; frames left of a jump

; Battle
wIsInBattle::		.ds 1		; 0 no, 1 wild, 2 trainer, FF lost
wPlayerMonNumber::	.ds 1		; which of the party fights
wPlayerSelectedMove::	.ds 1
wEnemySelectedMove::	.ds 1
wMoveChoice::		.ds 1		; line of the last chosen move
wTrainerNo::		.ds 1
wTrainerNext::		.ds 2		; address of the trainer's next fighter
wDamage::		.ds 1
wBattleRow::		.ds 2		; where the next line of a turn is written
wBattleOver::		.ds 1
wEnemyMon::
wEnemyMonSpecies::	.ds 1
wEnemyMonHP::		.ds 2
			.ds 2
wEnemyMonType1::	.ds 1
wEnemyMonType2::	.ds 1
			.ds 1
wEnemyMonMoves::	.ds 4
			.ds 21
wEnemyMonLevel::	.ds 1
wEnemyMonMaxHP::	.ds 2
wEnemyMonAttack::	.ds 2
wEnemyMonDefense::	.ds 2
wEnemyMonSpeed::	.ds 2
wEnemyMonSpecial::	.ds 2
wNewMon::		.ds MON_SIZE	; one that is being made

wMainDataStart::
rng::		.ds 2
wCurMap::		.ds 1
wYCoord::		.ds 1
wXCoord::		.ds 1
wPlayerDirection::	.ds 1		; DOWN UP LEFT RIGHT
wWalkBikeSurfState::	.ds 1		; 2 on water
wLastBlackoutMap::	.ds 1		; the last healing place
wLastBlackoutY::	.ds 1
wLastBlackoutX::	.ds 1
wRepelRemainingSteps::	.ds 1
wStepCount::		.ds 2
wBattlesWon::		.ds 1
wBlackouts::		.ds 1
wPlayerMoney::		.ds 3		; two decimal digits a byte, high byte first
wObtainedBadges::	.ds 1		; a bit for each gate
wNumBagItems::		.ds 1
wBagItems::		.ds BAG_LIMIT * 2 + 1	; item, number; FF ends it
wPartyDataStart::
wPartyCount::		.ds 1
wPartySpecies::		.ds PARTY_LENGTH + 1	; FF ends it
wPartyMons::
wPartyMon1::
wPartyMon1Species::	.ds 1
wPartyMon1HP::		.ds 2
			.ds 2
wPartyMon1Type1::	.ds 1
wPartyMon1Type2::	.ds 1
			.ds 1
wPartyMon1Moves::	.ds 4
			.ds 2
wPartyMon1Exp::		.ds 3
			.ds 16
wPartyMon1Level::	.ds 1
wPartyMon1MaxHP::	.ds 2
wPartyMon1Attack::	.ds 2
wPartyMon1Defense::	.ds 2
wPartyMon1Speed::	.ds 2
wPartyMon1Special::	.ds 2
wPartyMon2::
wPartyMon2Species::	.ds 1
wPartyMon2HP::		.ds 2
			.ds 2
wPartyMon2Type1::	.ds 1
wPartyMon2Type2::	.ds 1
			.ds 1
wPartyMon2Moves::	.ds 4
			.ds 2
wPartyMon2Exp::		.ds 3
			.ds 16
wPartyMon2Level::	.ds 1
wPartyMon2MaxHP::	.ds 2
wPartyMon2Attack::	.ds 2
wPartyMon2Defense::	.ds 2
wPartyMon2Speed::	.ds 2
wPartyMon2Special::	.ds 2
wPartyMon3::
wPartyMon3Species::	.ds 1
wPartyMon3HP::		.ds 2
			.ds 2
wPartyMon3Type1::	.ds 1
wPartyMon3Type2::	.ds 1
			.ds 1
wPartyMon3Moves::	.ds 4
			.ds 2
wPartyMon3Exp::		.ds 3
			.ds 16
wPartyMon3Level::	.ds 1
wPartyMon3MaxHP::	.ds 2
wPartyMon3Attack::	.ds 2
wPartyMon3Defense::	.ds 2
wPartyMon3Speed::	.ds 2
wPartyMon3Special::	.ds 2
wPartyMon4::
wPartyMon4Species::	.ds 1
wPartyMon4HP::		.ds 2
			.ds 2
wPartyMon4Type1::	.ds 1
wPartyMon4Type2::	.ds 1
			.ds 1
wPartyMon4Moves::	.ds 4
			.ds 2
wPartyMon4Exp::		.ds 3
			.ds 16
wPartyMon4Level::	.ds 1
wPartyMon4MaxHP::	.ds 2
wPartyMon4Attack::	.ds 2
wPartyMon4Defense::	.ds 2
wPartyMon4Speed::	.ds 2
wPartyMon4Special::	.ds 2
wPartyMon5::
wPartyMon5Species::	.ds 1
wPartyMon5HP::		.ds 2
			.ds 2
wPartyMon5Type1::	.ds 1
wPartyMon5Type2::	.ds 1
			.ds 1
wPartyMon5Moves::	.ds 4
			.ds 2
wPartyMon5Exp::		.ds 3
			.ds 16
wPartyMon5Level::	.ds 1
wPartyMon5MaxHP::	.ds 2
wPartyMon5Attack::	.ds 2
wPartyMon5Defense::	.ds 2
wPartyMon5Speed::	.ds 2
wPartyMon5Special::	.ds 2
wPartyMon6::
wPartyMon6Species::	.ds 1
wPartyMon6HP::		.ds 2
			.ds 2
wPartyMon6Type1::	.ds 1
wPartyMon6Type2::	.ds 1
			.ds 1
wPartyMon6Moves::	.ds 4
			.ds 2
wPartyMon6Exp::		.ds 3
			.ds 16
wPartyMon6Level::	.ds 1
wPartyMon6MaxHP::	.ds 2
wPartyMon6Attack::	.ds 2
wPartyMon6Defense::	.ds 2
wPartyMon6Speed::	.ds 2
wPartyMon6Special::	.ds 2
wEventFlags::		.ds 32		; a bit for each line of events.txt
wEventFlagsEnd::
wGameWon::		.ds 1
wMainDataEnd::
wRamEnd::

	.area _HRAM			; FF80
h_dma::			.ds 12		; the OAM DMA routine
h_frame::		.ds 1		; set by the VBlank handler
h_keys::		.ds 1
h_keys_new::		.ds 1		; buttons that went down in this frame
hSCX::			.ds 1		; for the registers at the next VBlank
hSCY::			.ds 1
hWY::			.ds 1
hTransfer::		.ds 1		; thirds of wTileMap that wait for VBlank
hFullScreen::		.ds 1		; 0: the window is a box, 1: the whole screen
hColor::		.ds 1		; 1 on a Game Boy Color
hBank::			.ds 1
hAttacker::		.ds 2		; a fighter's address
hDefender::		.ds 2
hCount::		.ds 1
hTemp::			.ds 4
hEnd::

RAM_SIZE  == wRamEnd - shadow_oam
MAIN_SIZE == wMainDataEnd - wMainDataStart
HRAM_SIZE == hEnd - h_dma
