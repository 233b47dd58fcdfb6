"""English word lists for parsing the labels of properties."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PREPOSITIONS = _words(
    """
    about across after against along alongside around as at before beside between by during for from in into near of
    on onto over than through to toward towards under upon via with within
    """
)
EXCEPTIONS = {
    "alongside": "[X] served alongside [Y] .",
    "alumni of": "[X] is a former student of [Y] .",
    "bridge carries": "[X] carries [Y] .",
    "can baggage checked": "[X]'s baggage check is [Y] .",
    "connects referenced to": "[X] connects to [Y] .",
    "contributor to the creative work or subject": "[X]'s contributor is [Y] .",
    "derivative work": "[X] is the source of [Y] .",
    "featuring": "[X] features [Y] .",
    "is route stop": "[X] is a route stop of [Y] .",
    "its calculation needs": "[X]'s calculation needs [Y] .",
    "language used": "[X]'s language is [Y] .",
    "languages spoken, written or signed": "[X] speaks [Y] .",
    "lethal when given to chickens": "[X]'s lethal dose for chickens is [Y] .",
    "lethal when given to mice": "[X]'s lethal dose for mice is [Y] .",
    "lethal when given to rabbits": "[X]'s lethal dose for rabbits is [Y] .",
    "lethal when given to rats": "[X]'s lethal dose for rats is [Y] .",
    "located in or next to body of water": "[X] is located in or next to [Y] .",
    "located in the administrative territorial entity": "[X] is located in the administrative territory of [Y] .",
    "located in/on physical feature": "[X] is located on [Y] .",
    "member of parliament": "[X]'s member of Parliament is [Y] .",
    "merged settlement": "[X]'s merged settlement is [Y] .",
    "mouth of the watercourse": "[X] flows into [Y] .",
    "named by language": "[X] is named by [Y] .",
    "official opened by": "[X] was officially opened by [Y] .",
    "olympic oath sworn by athlete": "[X]'s olympic oath was sworn by [Y] .",
    "olympic oath sworn by judge": "[X]'s olympic oath was sworn by [Y] .",
    "participates/participated in": "[X] participated in [Y] .",
    "parts": "[X]'s part is [Y] .",
    "person that first ascented a mountain": "[X] was first climbed by [Y] .",
    "references work, tradition or theory": "[X] references [Y] .",
    "relates an entity to the populated place in which it is located.": "[X] is located in [Y] .",
    "said to be the same as": "[X] is said to be the same as [Y] .",
    "same as": "[X] is the same as [Y] .",
    "setting of play": "[X] is set in [Y] .",
    "shares border with": "[X] shares a border with [Y] .",
    "split from party": "[X] split from the party [Y] .",
    "starring": "[X] stars [Y] .",
    "wiki page uses template": "[X] uses the template [Y] .",
    "wikipage disambiguates": "[X] disambiguates [Y] .",
}
# Present tense: "[X] employs [Y] .".
VERBS = _words(
    """
    accepts activates affects applies attracts awards belongs borders broadcasts builds carries causes cites
    comprises connects consists contains creates crosses cures defines depicts describes develops disambiguates
    discusses drains eats employs encodes entails evokes exemplifies exists follows generates governs grows holds
    hosts identifies implies includes influences inhabits inhibits innervates interacts joins knows leads lives
    loves makes manages manufactures mentions needs occupies occurs offers operates overlaps owns parasitizes
    participates performs plays possesses precedes prevents produces provides publishes receives references
    regulates replaces represents requires rules sells serves shares signifies speaks studies succeeds supplies
    supports surrounds teaches translates treats uses wears works writes
    """
)
# Past tense: "[X] influenced [Y] .", or with a preposition "[X] died in [Y] .".
TRANSITIVE_PAST = _words("commanded designed directed discovered influenced invented married won wrote")
INTRANSITIVE_PAST = _words(
    """
    appeared belonged competed descended died emerged fought graduated lived originated participated performed
    played ran resided served split studied taught worked
    """
)
# Past-tense verbs that follow their object in a label: "award received" → "[X] received award [Y] .".
OBJECT_FIRST_PAST = _words("attended conferred founded held played received won")
# Participles that mean a time if they are the whole label: "closed" → "[X] was closed in [Y] .".
DATED_PARTICIPLES = _words(
    """
    apprehended billed built closed created disbanded discontinued dissolved established founded introduced opened
    produced promoted released reopened retired updated
    """
)
# Before a preposition, these participles take "was": "[X] was born in [Y] .". Other participles take "is".
EVENT_PARTICIPLES = _words(
    """
    absorbed announced appointed arrested awarded beatified born built buried canonized commissioned composed
    constructed convicted created designed destroyed developed directed discovered drafted edited elected
    established filmed founded given held introduced invented killed launched merged nominated opened painted
    produced promoted published raised recorded released shot sworn translated written
    """
)
# Before "by", these participles take "is": "[X] is owned by [Y] .". Other participles take "was".
STATE_PARTICIPLES = _words(
    """
    affected approved carried caused endorsed followed funded governed headed influenced inspired led licensed
    maintained managed operated owned preceded protected regulated replaced represented sponsored succeeded supplied
    surrounded treated used
    """
)
PARTICIPLES = _words(
    """
    born bound bred built cast chosen drawn driven eaten found frozen given grown held hung kept known led lost made
    run set shot shown sold split spoken sung sworn taken won worn written
    """
)
NOT_PARTICIPLES = _words("bed breed creed embed feed need red seed shed speed weed")
ADJECTIVES = _words(
    """
    able active adjacent available capable close complementary contemporaneous different endemic equal equivalent
    famous full native near not present prone relative resistant responsible similar soluble subject toxic visible
    """
)
DEFINITE_NOUNS = _words("author capital cause creator founder head inverse opposite owner seat")
MEMBERSHIP_NOUNS = _words("member part")
LINKING_VERBS = _words("are had has have is was were")
UNCOUNTABLE = _words(
    """
    access athletics cinematography citizenship clothing content crew data education energy equipment ethnicity
    fauna flora fuel geology hardware homage illiteracy income information land leadership media money music
    mythology nationality news oversight pluviometry security software staff theology training water
    """
)
SINGULAR = _words("access bias business campus gas headquarters mass pass press texas")
PLURAL = _words("alumni children criteria demographics feet measurements men mice people statistics women")
IRREGULAR_PARTICIPLES = dict(
    pair.split(":")
    for pair in _words(
        """
    wrote:written won:won led:led held:held made:made became:become began:begun took:taken gave:given fought:fought
    taught:taught built:built ran:run split:split grew:grown came:come went:gone sang:sung lost:lost found:found
    met:met left:left said:said knew:known had:had
    """
    )
)
