"""Function words, negations and question words by language."""

from __future__ import annotations

import re
from collections.abc import Mapping


def table(text: str) -> dict[str, list[str]]:
    """Reads `name: word word name: word` into {name: words}, without case as texts are compared."""
    found: dict[str, list[str]] = {}
    for word in text.split():
        if word.endswith(":"):
            words = found[word[:-1]] = []
        else:
            words.append(word.casefold())
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
    sv: alla att av den det detta de dem denna dessa där då eller en ett efter från för ha hade
    han har hon i inte jag kan med men mot när och om på sig sin som till under upp ut var vid vi
    över är
    da: af alle at blev da de dem den der det dette disse du efter eller en er et for fra ham han
    har havde hun hvis hvor i ikke jeg kan med meget mellem men mod når og også om på sig som til
    ud under var ved vi være
    no: av alle at ble da de dem den der det dette disse etter eller en er et for fra ham han har
    hadde hun hvis hvor i ikke jeg kan med mellom men mot når og også om på seg som til ut under
    var ved vi være å
    fi: ei eli että hän he ja jo joka jos jotka kuin kun me mutta myös ne niin nyt oli olivat on
    ovat se sekä sen siitä tai tämä vain
    hu: az azt csak egy ezt és ez hogy így kell meg mert mint minden
    nem nagy még mely már majd pedig sem szerint után vagy volt voltak
    pl: a ale bez był była było były być dla do go i ich jako jak jego jej jest jeszcze już kiedy
    które który która lub na nad nie o od oraz po pod przez przy się są ta tak także tego ten to
    tym w we z za ze że
    cs: a aby ale ani byl byla bylo byli být do i jak jako je jeho jejich jen jeho již k které
    který která kde ke mezi na nad nebo o od po pod podle pro při s se si tak také ten to tím u v
    ve však z za ze že
    tr: acaba ama ancak bir biri birçok bu bunu bunun da daha de değil diğer dolayı en gibi göre
    hem her için ile ilgili ise kadar ki mi mı mu mü o olan olarak oldu olduğu olduğunu sonra şu
    tarafından tüm üzere ve veya ya
    ro: a acest această aceasta al ale am ar as au această ca care ce cea cei cel cele cu că când
    de despre din după este era erau fi fost în între la le lor lui mai nu o ori pe pentru prin sa
    sale sau se si sunt său și şi un unei unor unui o
    vi: bị bởi các cái chỉ cho có của cùng cũng do đã đang đây đến để điều được hay hơn khi không
    là lại làm mà một này nên nếu những như nhưng ở phải qua ra rằng rất sau sẽ tại thì theo trong
    trên trước từ và vào vẫn về vì với
    id: adalah agar akan antara atau bagi bahwa banyak beberapa bisa dalam dan dapat dari
    dengan di ia ini itu juga karena ke kepada lebih mereka namun oleh pada para saat sebagai
    sebuah secara sehingga telah tetapi tidak untuk yang
    el: από αν αυτή αυτό αυτός αυτά για δε δεν εκεί ένα ένας είναι επίσης έχει έχουν ή η ήταν θα
    και κατά με μετά μέχρι μια μία μπορεί να ο οι όπως όταν ότι ου πριν προς που σε στη στην στις
    στο στον στους στα τα τη την της τις το τον του τους των ως
    ar: إلى إن أن أو الذي التي الذين بعد بين تم ثم حتى حيث خلال ذلك على عن عند عندما غير في قبل
    قد كان كانت كل كما لا لم له لها ما مع من منذ نحو هذا هذه هو هي هناك و وقد ولا وهو وهي يكون
    hi: अपने और इस इसके उनके उस उसके एक एवं ऐसे और कर करता करते करना करने कहा का कि किया किसी की
    के को गई
    गए गया जब जा जाता जाती जाने जिस जैसे जो तक तथा तो था थी थे दिया ने पर बाद भी में यह या ये रहा
    रहे लिए वह वाले वे से हुआ हुई हुए है हैं हो होता होती होने
    fa: از است اما این ان او اگر با باید بر برای بود بودند به بین پس تا چون خود دارد در دیگر را
    شد شده شود که ما می نیز هر هم همه و ولی یا یک
    uk: а або але більш бо був була були було в вже від він вона вони для до є ж за з зі і із їх
    його її як який яка які коли на не ні о по при про та так також те то у що це цей
    he: אבל או אך אל אם אני את אתה בין גם הוא היא היה היו הם הזה הזאת זה זו זאת יותר יש כי כל כמו
    כן לא לפי מה מי מן על עד עם של שם
    """
)


# Words that turn a statement round, or say that somebody does not believe it.
NEGATIONS: Mapping[str, frozenset[str]] = _sets(
    """
    en: arent barely cannot debunked denied denies deny didnt disproved disproven doesnt dont
    doubtful fail failed fails false
    falsely hardly incorrect incorrectly isnt lack lacked lacking lacks myth neither never no
    nobody none nor not nothing nowhere rarely refuse refused refuses refusing refuted scarcely
    seldom unable unlikely untrue wasnt werent without wont wrong wrongly
    de: bestreitet bestritten dementiert falsch fälschlich irrtum irrtümlich kaum kein keine
    keinem keinen keiner keines keinesfalls
    keineswegs nicht nichts nie niemals niemand niemanden nirgends ohne unwahr weder widerlegt
    es: apenas desmiente desmintió falsa incorrecto inexacto falsamente falso jamás nada nadie
    ni ninguna ninguno ningún no nunca sin
    tampoco
    fr: aucun aucune dément démenti erroné fausse faussement faux guère inexact jamais n ne ni
    non nullement pas personne
    rien sans
    it: errato falsa falso inesatto mai neanche neppure nessun nessuna nessuno niente non nulla
    né senza
    pt: desmentiu falsa falso incorreto jamais nada nem nenhum nenhuma ninguém nunca não sem
    tampouco
    nl: allerminst allesbehalve geen nauwelijks niemand niet niets noch nooit onjuist onwaar zonder
    ru: без ложно ложь миф не неверно неправда нельзя нет ни никогда никто ничего
    ar: خطأ رفض رفضت نفى نفت لا لم لن ليس ليست ليسوا لست وليس وليست ولا ولم ولن فلا فلم فليس غير
    بدون دون كلا
    cs: bez nebyl nebyla nebyli nebylo nejsou nelze nemá nemají nemohl nemohou nemůže není nikdo
    nikdy nikoli žádná žádné žádný
    da: aldrig ej ikke ingen intet uden
    el: άνευ δε δεν δίχως ψευδές ψευδώς κανείς καμία κανένα κανένας μη μην
    ουδέποτε ούτε ποτέ χωρίς όχι
    fa: بدون نبود نبودند نخواهد ندارد ندارند نداشت نشد نمی نه نکرد نیست نیستند هرگز هیچ
    fi: ei eivät emme en et ette eikä ilman koskaan kukaan
    he: אין אינה אינו אינם אף בלי כלום לא לעולם מעולם ללא
    hi: नहीं नही न ना मत बिना बगैर
    hu: nem ne sem soha nincs nincsenek senki semmi nélkül
    id: belum bukan bukanlah takkan tak tanpa tidak tidaklah
    ko: 거부 거부했다 거짓 안 못 결코 아무도
    no: aldri ei ikke ingen intet uten
    pl: bez nie nigdy nigdzie nikt nic żaden żadna żadne
    ro: fals fără n neadevărat nici niciodată niciun nicio nimeni nimic nu
    sv: aldrig ej icke inga ingen inget inte utan
    tr: asla reddetti reddedildi hiç hiçbir hiçbiri yok yoktu yoktur olmadan olmaksızın olmayan
    yanlış
    uk: без не немає ні ніколи ніхто нічого
    vi: chưa chả chẳng không sai đừng
    """
)
# Where denial is part of the word.
DENYING_WORDS: Mapping[str, re.Pattern[str]] = {
    "en": re.compile(r".*n't\Z"),
    "cs": re.compile(r"ne(?:byl|má|mají|mo[hž]|mů|jsou|ní|lze|exist)"),
    "fa": re.compile(r"نمی|ن(?:بود|دار|داش|شد|کرد|خواه)"),
    "ko": re.compile(r"않|없|못[하했한할함]|아니|아닌|아닙|아녔"),
    "tr": re.compile(
        r"değil|yok(?:tur|tu)?\Z|.{2,}(?<!na)m(?:[ae]z|[ae]d[ıi]|[ıiuü]yor|[ae]m[ıi]ş"
        r"|[ae]y[ae](?:n|c[ae][kğ]))(?:lar|ler|[dt][ıiuü]r?)?\Z"
    ),
}
# Several words that deny together.
DENYING_PHRASES: Mapping[str, re.Pattern[str]] = {
    lang: re.compile(rf"(?:{phrases})\b", re.IGNORECASE)
    for lang, phrases in {
        "en": "anything but|yet to|far from|ceas(?:ed?|es) to|stop(?:ped|s)? (?!during)\\w+ing",
        "de": "alles andere|weit entfernt",
        "es": "lejos de|dej(?:a|ó|an|aron|aba) de",
        "fr": "loin d|cess(?:a|e|ent|é|èrent) d",
        "it": "lontan[aoei] da|(?:cess|sme(?:tt|s))\\w* di|tutt'altro che",
        "pt": "longe de|deix(?:a|ou|am|aram) de",
        "ar": "ما كانت?",
    }.items()
}

# Words that ask, and that no answer has to hold.
ASKS: Mapping[str, frozenset[str]] = _sets(
    """
    en: how many much what whats when where which who whom whose why
    de: wann warum was welche welchem welchen welcher welches wem wen wer weshalb wessen wie
    wieso wieviel wieviele wo woher wohin wodurch womit worin
    es: cuál cuáles cuándo cuánta cuántas cuánto cuántos cómo dónde adónde qué quién quiénes
    fr: combien comment lequel laquelle où pourquoi quand quel quelle quelles quels qui quoi
    it: che chi come cosa dove perché qual quale quali quando quanta quante quanti quanto
    pt: como onde porque porquê qual quais quando quanta quantas quanto quantos quem quê
    nl: hoe hoeveel waar waarom wanneer wat welk welke wie wiens
    ru: где зачем как каким каких какого какое какой какую какая какие каков когда кого кому кто
    куда откуда почему сколько чего чей чем что
    sv: hur hurdan när vad var varför vem vems vilka vilken vilket
    da: hvad hvem hvilke hvilken hvilket hvor hvordan hvorfor hvornår
    no: hva hvem hvilke hvilken hvilket hvor hvordan hvorfor når
    fi: kuinka kuka ketkä ketä kenen miksi mikä mitkä millainen milloin miten mitä missä montako
    hu: hány hogyan hol ki kik kinek melyik mi miért mik mikor milyen mit mennyi
    pl: czemu czyj dlaczego gdzie ile jak jaka jaki jakie kiedy kim kogo kto która które który
    cs: co čí jak jaká jaké jaký kde kdo kdy kolik koho která které který proč
    tr: hangi hangisi kaç kaçıncı kim kimdir kimin kime kimler nasıl ne neden nedir neler nerede
    nereden nereye neresi neydi niçin niye
    ro: când care cât câtă câte câți cine ce cui cum unde
    vi: ai bao đâu gì khi mấy nào nhiêu sao thế
    id: apa apakah bagaimana berapa dimana kapan mana mengapa siapa
    el: γιατί πόσα πόσες πόση πόσο πόσοι πόσος πότε ποια ποιαν ποιας ποιες ποιο ποιοι ποιον ποιος
    ποιους που πού πως πώς τι
    ar: أي أية أين بماذا كم كيف لماذا ما ماذا متى مَن من هل
    hi: कब कहाँ कहां का कितना कितनी कितने किन किस किसका किसकी किसके किसको किसने किसे कैसे कौन
    कौनसा कौनसी
    क्या क्यों
    fa: آیا چرا چطور چقدر چگونه چند چه چی چیست کجا کدام کی
    uk: де звідки коли кого кому котрий куди навіщо скільки хто чому що яка яке який які
    he: איזה איזו איך אילו איפה כיצד כמה למה מדוע מה מי מתי היכן
    ko: 누가 누구 무엇 무엇을 무엇이 무슨 몇 어느 어디 어떤 어떻게 언제 왜 얼마나
    """
)
# The same in scripts without spaces, and the phrases that make a sentence a question.
_PHRASES = """
为什么 為什麼 什么时候 什麼時候 什么 什麼 哪一个 哪个 哪個 哪些 哪里 哪裡 哪儿 哪年 哪种 哪位
哪一 哪 谁的 谁 誰 多少 怎么样 怎么 怎麼 怎样 怎樣 如何 是否 几个 几年 几 吗 呢 请问 何时 何時
何种 何处 どのような どのように どうやって どうして どうなる どこの どこ どれくらい どれ どちら
どの どんな いつの いつ だれ なぜ なんという なに いくつ いくら 誰が 何という 何 ですか ますか
でしょうか ましたか のか？ のか。 อะไรบ้าง อะไร ใครบ้าง ใคร ที่ไหน ที่ใด เมื่อไหร่ เมื่อไร
เมื่อใด อย่างไร ยังไง ทำไม เพราะเหตุใด เท่าไหร่ เท่าไร เท่าใด กี่ ไหน ใดบ้าง ใด หรือไม่ คือ
"""
ASKING_PHRASES = tuple(_PHRASES.split())
