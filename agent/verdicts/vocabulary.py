"""Small tables of words: function words and negations by language, opposites, abbreviations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping


def table(text: str) -> dict[str, list[str]]:
    """Reads `name: word word name: word` into {name: words}."""
    found: dict[str, list[str]] = {}
    for word in text.split():
        if word.endswith(":"):
            words = found[word[:-1]] = []
        else:
            words.append(word)
    return found


def _sets(text: str) -> dict[str, frozenset[str]]:
    return {name: frozenset(words) for name, words in table(text).items()}


# Function words; the languages are also guessed by them.
STOPS: Mapping[str, frozenset[str]] = _sets(
    """
    en: a about according addition additionally after all also although am an and any are as
    at be because been before being between both but by can cent could did do does during each
    even example finally for from furthermore had has have he hence her him his however i if
    in indeed into is it its just may me might more moreover most must my of off on one only
    or other our out over overall per percent s shall she should since so some such than that
    the their them then there therefore these they this those though through thus to under
    until up us very via was we well were what when where which while who whom whose will with
    would you your
    de: aber als am an auch auf aus bei beim bis da dann das dass daß dem den der deren des
    dessen die diese diesem dieser dieses dort durch ein eine einem einen einer eines er es
    für haben hat hatte hatten hier ihr ihre ihrer im in ist kann konnte können man mehr mit
    nach noch nur oder prozent sehr sein seine seiner sich sie sind so um und unter vom von
    vor war waren welche welcher wenn werden wie wir wird worden wurde wurden während zu zum
    zur zwischen über
    es: a al ciento como con cual cuando de del desde donde durante e el en entre era eran es
    esa ese eso esta estas este estos está están fue fueron ha había habían han hasta la las
    le les lo los muy más o para pero por porque que quien quienes qué se ser sobre son su sus
    también u un una unas unos y ya
    fr: a afin au aussi aux avaient avait avec c ce cent ces cette comme d dans de des dont du
    elle elles en entre est et fut il ils j jusqu l la le les leur leurs lors lorsqu m mais
    nous on ont ou où par plus pour puisqu qu que qui s sa se ses son sont sur t très un une
    vous y à étaient était été être
    it: ai al alla anche aveva che come con d da dal dalla degli dei del dell della delle di e
    ed era essere fra gli ha hanno i il in l la le lo ma nei nel nella o per più questa questo
    s si sono stato su sua suo tra un una è
    pt: a ao as até com como da das de do dos e em entre era esta este está foi foram mais mas
    na nas no nos o os ou para pela pelo por que se ser seu seus sua suas são também tem um
    uma à é
    nl: aan als bij dat de deze die dit door een en er heeft het hij in is maar met naar of om
    ook op over te tot uit van voor waren was werd worden wordt ze zij zijn
    ru: а был была были быть в во для до его есть её же за и из или их к как которые который
    на но о об он она они от по при с со также том у что это
    """
)

# Words that turn a statement round, or say that somebody does not believe it.
NEGATIONS: Mapping[str, frozenset[str]] = _sets(
    """
    en: arent barely cannot denied denies deny didnt doesnt dont fail failed fails false
    falsely hardly incorrect incorrectly isnt lack lacked lacking lacks myth neither never no
    nobody none nor not nothing nowhere rarely refuse refused refuses refusing scarcely seldom
    unable unlikely untrue wasnt werent without wont wrong wrongly
    de: falsch fälschlich irrtümlich kaum kein keine keinem keinen keiner keines keineswegs
    nicht nichts nie niemals niemand niemanden nirgends ohne unwahr weder
    es: apenas falsa falsamente falso jamás nada nadie ni ninguna ninguno ningún no nunca sin
    tampoco
    fr: aucun aucune fausse faussement faux guère jamais n ne ni non nullement pas personne
    rien sans
    it: falsa falso mai neanche nessun nessuna nessuno niente non nulla né senza
    pt: falsa falso jamais nada nem nenhum nenhuma ninguém nunca não sem tampouco
    nl: geen niemand niet niets noch nooit onjuist zonder
    ru: без ложно не неверно нельзя нет ни никогда никто ничего
    """
)

_PAIRS = """
increas/decreas increas/reduc increas/declin increas/drop increas/fell rais/lower rais/reduc
rais/cut rise/fall rose/fell grow/shrink grew/shrank gain/los gain/lost expand/contract
improv/worsen strengthen/weaken more/less more/fewer most/least higher/lower high/low
highest/lowest larger/smaller large/small largest/smallest bigger/smaller longer/shorter
long/short longest/shortest older/younger old/new oldest/newest oldest/youngest faster/slower
fast/slow fastest/slowest hotter/colder hot/cold warm/cold warmest/coldest better/worse best/worst
good/bad stronger/weaker strong/weak heavier/lighter heavy/light deeper/shallower cheaper/dearer
expensive/cheap rich/poor before/after first/last first/second earlier/later early/late
above/below up/down over/under inside/outside north/south east/west northern/southern
eastern/western northeast/southwest left/right win/lose won/lost winner/loser victory/defeat
beat/lost beat/defeated allow/forbid allow/prohibit allow/ban permit/prohibit legal/illegal
accept/reject includ/exclud positive/negative male/female man/woman men/women boy/girl
father/mother husband/wife son/daughter brother/sister king/queen always/never often/rarely
maximum/minimum enabl/disabl open/clos true/false safe/dangerous public/private buy/sell
bought/sold import/export begin/end began/ended start/stop start/end support/oppos agre/disagre
succe/fail major/minor majority/minority ancient/modern rural/urban internal/external alive/dead
birth/death born/died guilty/innocent everyone/nobody all/none many/few with/without cause/prevent
create/destroy attack/defend enter/leave arriv/depart teacher/student upper/lower plus/minus
push/pull giv/tak borrow/lend employer/employee north/east north/west south/east south/west
mehr/weniger meist/wenigst höher/niedriger hoch/niedrig höchst/niedrigst höchst/tiefst
größer/kleiner groß/klein größt/kleinst länger/kürzer lang/kurz älter/jünger alt/neu ältest/jüngst
schneller/langsamer schnell/langsam heiß/kalt wärmer/kälter warm/kalt besser/schlechter
stärker/schwächer stark/schwach vor/nach erst/letzt früher/später früh/spät über/unter
nördlich/südlich östlich/westlich norden/süden osten/westen link/recht gewann/verlor
gewinn/verlier gewonn/verlor steig/sink stieg/sank stieg/fiel steiger/senk erhöh/senk
erhöh/verringer zunahm/abnahm zunehm/abnehm wachs/schrumpf erlaub/verbiet erlaub/verbot immer/nie
mann/frau männer/frauen männlich/weiblich maximal/minimal mindestens/höchstens innerhalb/außerhalb
öffentlich/privat beginn/end mit/ohne alle/keine viel/wenig leicht/schwer más/menos mayor/menor
alto/bajo alta/baja grande/pequeño largo/corto antes/después primero/último primera/última
primer/último temprano/tarde encima/debajo norte/sur este/oeste aument/dismin aument/reduc
aument/redujo sub/baj crec/decrec gan/perd mejor/peor siempre/nunca hombre/mujer hombres/mujeres
máximo/mínimo dentro/fuera con/sin público/privado rápid/lent caliente/frí viejo/joven
positiv/negativ plus/moins supérieur/inférieur haut/bas haute/basse grand/petit grande/petite
long/court avant/après premier/dernier première/dernière tôt/tard dessus/dessous nord/sud
est/ouest augment/dimin augment/rédui augment/baiss croiss/décroiss mont/descend gagn/perd
meilleur/pire toujours/jamais homme/femme hommes/femmes avec/sans chaud/froid rapide/lent
vieux/jeune jeune/vieil ancien/nouv più/meno maggior/minor prima/dopo primo/ultimo mais/menos
maior/menor antes/depois primeiro/último meer/minder voor/na eerste/laatste больше/меньше
выше/ниже до/после первый/последний 增加/减少 增加/減少 增加/降低 增长/下降 上升/下降 提高/降低
提升/降低 上昇/下降 上昇/低下 増加/減少 扩大/缩小 加强/减弱 之前/之后 以前/以后 以前/以後
前に/後に 最大/最小 最高/最低 最多/最少 最长/最短 最初/最後 最早/最晚 大于/小于 高于/低于
多于/少于 早于/晚于 多く/少な 高い/低い 大き/小さ 長い/短い 东部/西部 南部/北部 東部/西部 北/南
允许/禁止 许可/禁止 許可/禁止 支持/反对 賛成/反対 胜利/失败 勝利/敗北 勝っ/負け 击败/败给
男性/女性 总是/从不 公开/私人 以上/以下 上游/下游
"""


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for pair in _PAIRS.split():
        one, other = pair.split("/")
        found[one].add(other)
        found[other].add(one)
    return {word: frozenset(others) for word, others in found.items()}


# A word, or its beginning, and the beginnings of the words that say the reverse.
OPPOSITES: Mapping[str, frozenset[str]] = _opposites()

# Behind these a full stop ends no sentence; single letters and `z.B.` are known by their shape.
_ABBREVIATIONS = """
adm al approx apr assn aug av bd bros bzw ca capt cf cmdr co col corp dec dept dez dr drs dña eds
eq est etc evtl feb ft geb gen ggf gov hab hon hrsg inc inkl jan jr jul jun lt ltd maj messrs mio
mlle mm mme mr mrd mrs ms mt nov núm oct okt pres prof pág rep rev sen sep sept sgt sog sr sra
srta st str tel ud uds univ usw vgl vs
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
