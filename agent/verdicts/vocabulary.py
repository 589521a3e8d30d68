"""Small tables of words: opposites, and abbreviations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

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
half/all half/third half/quarter half/most third/quarter
hälfte/drittel hälfte/viertel hälfte/alle mitad/tercio moitié/tiers present/missing adult/child
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
