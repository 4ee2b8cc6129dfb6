"""Lists of English words that `inflection` needs: what is irregular, and what kind of word some are."""

# Each group holds all forms of a word, the dictionary form first.
IRREGULAR = """
    be am is are was were been being; have has had having; good better best; bad worse worst; far farther farthest
    further furthest; alumnus alumni; analysis analyses; axis axes; bacterium bacteria; basis bases; cactus cacti
    cactuses; café cafés; calf calves; child children; crisis crises; criterion criteria; curriculum curricula;
    diagnosis diagnoses; elf elves; foot feet; fungus fungi; goose geese; grandchild grandchildren; half halves; hoof
    hooves; hypothesis hypotheses; knife knives; larva larvae; leaf leaves; life lives; loaf loaves; louse lice;
    medium media mediums; mouse mice; nucleus nuclei; oasis oases; ox oxen; penny pennies pence; person people
    persons; phenomenon phenomena; quiz quizzes; scarf scarves scarfs; self selves; sheaf sheaves; shelf shelves;
    stimulus stimuli; stomach stomachs; thesis theses; thief thieves; tooth teeth; wife wives; wolf wolves
"""
# Verbs and their past forms, if these are not the same; -s and -ing are regular.
VERBS_WITH_PASTS = """
    do did done; go went gone going; arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become
    became; begin began begun; bend bent; bet; bid; bind bound; bite bit bitten; bleed bled; blow blew blown; break
    broke broken; breed bred; bring brought; broadcast; build built; burn burned burnt; burst; buy bought; cast; catch
    caught; choose chose chosen; cling clung; come came; cost; creep crept; cut; deal dealt; dig dug; dive dived dove;
    draw drew drawn; dream dreamed dreamt; drink drank drunk; drive drove driven; dwell dwelt; eat ate eaten; fall
    fell fallen; feed fed; feel felt; fight fought; find found; fit fitted; flee fled; fling flung; fly flew flown;
    forbid forbade forbidden; forecast; foresee foresaw foreseen; forget forgot forgotten; forgive forgave forgiven;
    freeze froze frozen; get got gotten; give gave given; grind ground; grow grew grown; hang hung; hear heard; hide
    hid hidden; hit; hold held; hurt; keep kept; kneel knelt kneeled; knit knitted; know knew known; lay laid; lead
    led; lean leaned leant; leap leapt leaped; learn learned learnt; leave left; lend lent; let; lie lay lain; light
    lit lighted; lose lost; make made; mean meant; meet met; mislead misled; mistake mistook mistaken; misunderstand
    misunderstood; mow mowed mown; outgrow outgrew outgrown; overcome overcame; overhear overheard; oversee oversaw
    overseen; overtake overtook overtaken; pay paid; plead pleaded pled; prove proved proven; put; quit; read; rebuild
    rebuilt; retell retold; rewrite rewrote rewritten; rid; ride rode ridden; ring rang rung; rise rose risen; run
    ran; say said; see saw seen; seek sought; sell sold; send sent; set; sew sewed sewn; shake shook shaken; shed;
    shine shone shined; shoot shot; show showed shown; shrink shrank shrunk; shut; sing sang sung; sink sank sunk; sit
    sat; slay slew slain; sleep slept; slide slid; sling slung; slit; sow sowed sown; speak spoke spoken; speed sped
    speeded; spell spelled spelt; spend spent; spill spilled spilt; spin spun; spit spat; split; spoil spoiled spoilt;
    spread; spring sprang sprung; stand stood; steal stole stolen; stick stuck; sting stung; stink stank stunk; stride
    strode; strike struck; string strung; strive strove striven; swear swore sworn; sweep swept; swell swelled
    swollen; swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought;
    throw threw thrown; thrust; tread trod trodden; undergo underwent undergone; understand understood; undertake
    undertook undertaken; undo undid undone; uphold upheld; upset; wake woke woken; wear wore worn; weave wove woven;
    wed wedded; weep wept; wet; win won; wind wound; withdraw withdrew withdrawn; withstand withstood; wring wrung;
    write wrote written
"""
REGULAR_VERBS = """
    abandon absorb abuse accelerate accept access accompany accomplish accord accuse accustom achieve acknowledge
    acquaint acquire act activate adapt add address adjust administer admire admit adopt advance advertise advise
    advocate affect agree aim alarm alert align allege allow alter amaze amuse analyze anchor anger animate announce
    annoy answer anticipate appeal appear applaud apply appoint appreciate approach approve argue arm arouse arrange
    arrest arrive ask assault assemble assert assess assign assist associate assume assure astonish attach attack
    attempt attend attract attribute author automate avoid await awaken award bake balance ban bang bargain bark base
    bat bath bathe battle beam beg behave believe belong benefit betray bike bill blame blaze blend bless blind blink
    block bloom blur board boil bolt bomb book boom boost border borrow bother bounce bow bowl box braid brand breathe
    brew brief browse bruise brush bury calculate call calm camp cancel capture care carry carve cause cease celebrate
    challenge change charge charm chase chat cheat check cheer chew chill chip choke chop circle circulate cite claim
    clap clash clasp clean clear clench click climb clip close clot clutch coach coat code coin collaborate collapse
    collect collide color comb combine comfort command comment commit communicate compare compel compete compile
    complain complete complicate comply compose compromise compute conceal concentrate concern conclude condemn
    conduct confess confirm confront confuse connect consider consist construct consult consume contact contain
    contaminate contest continue contract contrast contribute control convert convey convict convince cook coordinate
    cope copy cough counsel count cover crack craft crash crave crawl create cross crouch crowd crown crumble crush
    cry cuddle cultivate cure curl curse cycle damage dance dangle dare darken dash date debate debug deceive decide
    declare decline decorate decrease dedicate deem defeat defend define delay delete delight deliver demand
    demonstrate deny depart depend deploy deposit depress derive descend describe desert deserve design designate
    desire destroy detail detain detect determine develop devote diagnose die differ dilate dine dip direct disable
    disagree disappear disappoint discharge discipline disclose discover discuss disgust dismiss display dispose
    dispute disrupt dissolve distinguish distract distress distribute disturb divide divorce dock document dominate
    donate double download draft drag drain drape dread dress dribble drift drill drop drown drum dry dunk dye earn
    ease echo edit educate elect elevate eliminate embarrass embed embrace emerge employ empty enable encounter
    encourage end endorse endure enforce engage engineer enhance enjoy enlarge enquire ensure enter entertain entitle
    envy equip escape escort establish estimate evacuate evaluate evolve exaggerate examine exchange excite exclaim
    exclude execute exercise exhale exhaust exist exit expand expect experience experiment explain explode explore
    export expose express extend extract face fade fail faint fake fancy fascinate fashion fasten fear feature fetch
    figure file fill film filter finance finish fire fish fix flag flap flash flip float flood flow flush focus fold
    follow fool force form frame frighten frown frustrate fry fuel fulfill function fund furnish gain gallop gamble
    gasp gather gaze generate glance glare gleam glow govern grab graduate grant grasp graze greet grin grip groom
    growl guarantee guard guess guide hack hail halt hammer handle happen harden harm harvest hate haul haunt head
    heal heat help hesitate highlight hike hint hire honor hook hop hope host hover hug hunt hurdle hurry ignore
    illustrate image imagine impair implement import impose impress improve incline include incorporate increase
    indicate induce infect influence inform inhale inherit initiate inject injure inquire insert insist inspect
    inspire install insult integrate intend interact interest interfere interpret interrupt intervene interview
    introduce invade invent invest investigate invite involve irritate isolate issue itch jail jam jerk jog join joke
    judge juggle jump kayak kick kidnap kill kiss knead knock label lack land laugh launch leak lick lift like limit
    line linger link list listen live load locate lock lodge log look lounge love lower mail maintain manage
    manufacture map march mark market marry mask massage match measure melt mention merge mess message migrate mingle
    miss mix mock model monitor mop motivate mount mourn move murder murmur mutate mutter nail name narrow navigate
    need neglect negotiate nest nod nominate note notice nurse obey object oblige obscure observe obtain occupy occur
    offend offer open operate oppose orbit order originate outline overlap overlook overwhelm owe own pace pack
    package paddle paint pair park participate pass paste pat patch pause pedal peek peel peer penetrate perceive
    perch perform permit persist persuade pet photograph pick pierce pile pitch place plan plant play pledge plough
    plow plunge point poison poke polish poll pop portray pose possess post postpone pour power practice praise pray
    precede predict prefer prepare prescribe present preserve press presume pretend prevent price print proceed
    process proclaim produce progress prohibit project prolong promise promote prompt pronounce propose prosecute
    protect protest provide publish pull pump punch punish purchase pursue push puzzle query question quote race rage
    raid rain raise rake rally range rank rate reach react reason reassure recall receive reckon recommend record
    recover recruit recur reduce refer refine reflect reform refuse regain regard register regret regulate rehearse
    reject relate relax release relieve rely remain remark remember remind remove render renew rent repair repeat
    replace reply report represent request require rescue resemble reserve resign resist resolve respect respond rest
    restore restrain restrict result resume retain retire retort retreat return reuse reveal reverse review revise
    revive reward rinse riot rip roar roast rob roll root rope rotate route row rub ruin rule rush sacrifice sail
    salute sample satisfy save scale scan scar scare scatter schedule score scramble scrape scratch scream screen
    scroll scrub sculpt seal search seat secure seem seize select sentence separate serve settle shade shape share
    sharpen shatter shave shelter shift ship shiver shock shop shorten shout shovel shrug shuffle sigh sign signal
    skate skateboard ski skip slam sled slice slip slope slow smash smell smile smoke smooth snap snatch sneeze sniff
    snow snowboard soak sob solve soothe sound spare spark speculate sponsor spot spray sprinkle spy squat squeeze
    stab stack stage stagger stain stamp stare start startle starve state stay steam step stimulate stir stock stoop
    stop store storm straighten strain strand stream strengthen stress stretch strip stroke stroll structure struggle
    strum study stuff stumble stun style submit subscribe substitute succeed suck sue suffer suggest suit summon
    sunbathe supply support suppose suppress surf surge surprise surrender surround survey survive suspect suspend
    sustain swallow sway sweat switch tackle tag talk tangle tap tape target tempt tend test text thank thicken thread
    threaten thrill thrive throb thunder tickle tie tighten tingle tire toast tolerate torture toss touch tour tow
    trace track trade trail train transfer transform translate transmit transport trap travel treat tremble trick
    trigger trim trot trouble trust try tuck tune turn tweet twist twitch type unite unload unlock unpack unveil
    update upgrade upload urge use utter vaccinate vacuum vanish vary venture vibrate view violate visit volunteer
    vomit vote wag wait walk wander want warm warn wash waste watch wave wax weaken weigh welcome weld whip whirl
    whisk whisper whistle widen wipe wire wish witness wonder work worry worsen wrap wreck wrestle yawn yell yield zip
"""
ADJECTIVES = """
    angry big black bold brave bright broad brown busy calm cheap clean clear clever close cloudy cold cool crazy
    cruel curly cute damp dark deadly dear deep dirty dry dull dumb early easy faint fair fancy fast fat few fine firm
    fit flat fluffy fresh friendly full funny gentle grand gray great green grey handsome happy hard harsh healthy
    heavy high hot hungry icy juicy keen kind large late lazy light likely little lively lonely long loose loud lovely
    low lucky messy mild moist muddy narrow nasty near neat new nice noble noisy old pale plain pleasant polite poor
    pretty proud pure quick quiet rainy rare red rich ripe rough rude sad safe salty scary shallow sharp shiny short
    sick silly simple sleepy slim slow small smart smooth soft sorry sour spicy steep sticky stiff strange strict
    strong stupid sunny sweet tall tame tasty thick thin thirsty tidy tight tiny tough ugly warm weak wealthy weird
    wet white wide wild windy wise young
"""  # that take -er and -est
# Nouns that look like a form of another word, like an adverb, an adjective or a kind of man.
NOUNS = """
    ally anomaly armful atlas bed beginning being belly bias bit booking bore bound breed building bully business
    butterfly cable caiman canvas cast ceiling chemical christmas collectible constable creed crossing cupful deed
    deliverable dragonfly drawing drove dwelling ending evening family feeling felt filling finding fly folly found
    gas german greeting ground handful handkerchief human hundred illness individual jelly kindred king landing lay
    left lens lily listing meeting monopoly morning mouthful musical offering opening painting professional rally
    rating reading recording reed reply ring roman rose saw saying seed serving setting shaman shed shot sled spoke
    spoonful spring stole string supply syllable table talisman thing thought timetable valuable variable vegetable
    warning weakness wedding weed wing witness wound
"""
UNCHANGED = """
    abroad advice afraid ago ahead aircraft alive alone alright anybody anymore anyone anyway anywhere apart aside
    asleep aware away awesome basic beyond born central certain chess clothing complex correct current data dead deer
    democratic dice different difficult digital dirt due east economic effective eight eighty electric elegant eleven
    entire equipment everybody everyone everywhere evidence exact excellent expensive external extra extreme false
    fantastic federal fifteen fifty financial first five foreign forever former forty forward four fun furniture
    genetic glad global golden graffiti guilty hockey homework honest huge immediate important independent information
    instead internal knowledge local luggage machinery mad magic main math maybe mental military mobile modern music
    natural nearby necessary next nine ninety nobody normal north nowhere nuclear odd okay online outdoor outside
    overall past peace percent perfect permanent personal please police popular private proper public ready real
    recent regular rice romantic royal rural scientific seldom seven seventy several severe sheep shrimp significant
    silent similar single six sixty soccer social software somebody somehow someone somewhat somewhere soon south
    southern spaghetti special steady straight sudden super sure ten therefore thirteen thirty three throughout today
    together tomorrow tonight traffic true twelve twenty twice two unique urban usual weather west whole wooden woolen
    worth wrong yesterday zero
"""
DOUBLING = """
    admit begin commit compel control debug defer embed emit equip expel forbid forget incur infer kidnap occur omit
    overlap patrol permit prefer propel rebel recur refer regret submit transfer transmit upset
"""  # verbs of several syllables whose last consonant is doubled
IN_OES = """
    buffalo cargo do domino echo go hero mango mosquito potato tomato tornado torpedo undergo undo veto volcano
"""
