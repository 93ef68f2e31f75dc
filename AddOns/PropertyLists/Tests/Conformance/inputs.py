# SPDX-License-Identifier: Apache-2.0
"""Inputs that readers of property lists may take or refuse: INPUTS, each with its name, and DIFFERENT, what this library makes of those
that Core Foundation reads as another tree, or alone takes or refuses."""
import struct

HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "a">\n<plist version="1.0">\n'

ELEMENTS = [
   
    b'<dict><key>b</key><string>1</string><key>a</key><string>2</s'
    b'tring><key>B</key><string/><key>a10</key><true/><key>a2</key><false/></dict>',
    b'<dict><key>a</key><string>1</string><key>a</key><string>2</string></dict>', b'<dict><key>a</key></dict>',
    b'<dict><string>a</string></dict>', b'<dict><key>a</key><key>b</key></dict>',
    b'<dict><key>a</key><string>b</string>junk</dict>', b'<dict>junk<key>a</key><string>b</string></dict>',
    b'<array>junk<string>b</string></array>', b'<array><key>k</key></array>', b'<array><foo/></array>', b'<integer>5</integer>',
    b'<integer> 5 </integer>', b'<integer>+5</integer>', b'<integer>-5</integer>', b'<integer>0x1F</integer>',
    b'<integer>-0x1F</integer>', b'<integer>0x</integer>', b'<integer></integer>', b'<integer/>', b'<integer>5 5</integer>',
    b'<integer>5.5</integer>', b'<integer>9223372036854775807</integer>', b'<integer>9223372036854775808</integer>',
    b'<integer>18446744073709551615</integer>', b'<integer>18446744073709551616</integer>',
    b'<integer>-9223372036854775808</integer>', b'<integer>-9223372036854775809</integer>', b'<integer>00012</integer>',
    b'<integer>5a</integer>', b'<real>1.5</real>', b'<real> 1.5 </real>', b'<real>1e3</real>', b'<real>nan</real>',
    b'<real>NaN</real>', b'<real>inf</real>', b'<real>-inf</real>', b'<real>+infinity</real>', b'<real>infinity</real>',
    b'<real>INF</real>', b'<real></real>', b'<real/>', b'<real>0x1p3</real>', b'<real>1.5x</real>', b'<real>abc</real>',
    b'<real>1,5</real>', b'<real>1e400</real>', b'<true/>', b'<true></true>', b'<true> </true>', b'<true>x</true>',
    b'<true><!-- c --></true>', b'<false/>', b'<date>2001-01-01T00:00:00Z</date>', b'<date>2000-02-29T12:34:56Z</date>',
    b'<date>2001-02-29T12:34:56Z</date>', b'<date>1999-13-01T00:00:00Z</date>', b'<date>-0001-01-01T00:00:00Z</date>',
    b'<date>0001-01-01T00:00:00Z</date>', b'<date>10000-01-01T00:00:00Z</date>', b'<date>2001-01-01T00:00:00.5Z</date>',
    b'<date>2001-01-01T24:00:60Z</date>', b'<date>2001-01-01T00:00:00</date>', b'<date>2001-1-1T0:0:0Z</date>',
    b'<date> 2001-01-01T00:00:00Z</date>', b'<date>2001-01-01T00:00:00Z </date>', b'<date></date>', b'<date/>',
    b'<date>2001-01-01T00:00:00+01:00</date>', b'<date>garbage</date>', b'<data>YWJj</data>',
    b'<data>\n\tYWJj\n\tZGVm\n\t</data>', b'<data>YQ==</data>', b'<data>YQ=</data>', b'<data>YQ</data>', b'<data>YWI</data>',
    b'<data>YWJjZ</data>', b'<data>Y!W@Jj</data>', b'<data>YQ==YWJj</data>', b'<data>=</data>', b'<data></data>', b'<data/>',
    b'<string>a &lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;</string>', b'<string>&#65;&#x42;&#x1F600;</string>',
    b'<string>&#0;</string>', b'<string>&#1;</string>', b'<string>&#xD800;</string>', b'<string>&#x110000;</string>',
    b'<string>&foo;</string>', b'<string>a<![CDATA[<b>&amp;]]>c</string>', b'<string>a<!-- comment -->b</string>',
    b'<string>a<?pi x?>b</string>', b'<string>  spaces\n\tkept </string>', b'<string>a<b/>c</string>',
    b'<string a="b">attr</string>', b'<dict><key>CF$UID</key><integer>7</integer></dict>',
    b'<dict><key>CF$UID</key><integer>-7</integer></dict>', b'<dict><key>CF$UID</key><string>7</string></dict>',
    b'<array><string>same</string><string>same</string></array>', b'<string>one</string><string>two</string>',
    b'<!-- c --><string>one</string><!-- d -->', b'<string>unterminated', b'<string>mism</strin>', b'<string>x</string >',
    b'< string>x</string>', b'<string>&amp</string>', b'<array/>', b'<dict/>', b'<dict></dict>', b'<key>alone</key>', b'<key/>',
    b'<dict><key/><string>e</string></dict>', b'<dict><key>a<!-- c -->b</key><string>e</string></dict>',
    b'<dict> <!-- c --> <key>a</key> <!-- d --> <string>e</string> </dict>',
    b'<dict><key>a</key><!-- c --><string>e</string></dict>', b'<plist><string>x</string></plist>',
    b'<integer>1<!-- c -->2</integer>', b'<integer>&#49;</integer>', b'<real>-0.0</real>', b'<real>0.1</real>',
    b'<real>100000</real>', b'<real>123456789012345678901234567890</real>', b'<integer>- 5</integer>', b'<integer>--5</integer>',
    b'<integer>0</integer>', b'<integer>-0</integer>', b'<integer>128</integer>', b'<integer>32768</integer>',
    b'<integer>2147483648</integer>', b'<string>line1&#13;line2</string>',
    b'<dict><key>CF$UID</key><integer>4294967296</integer></dict>',
    b'<dict><key>CF$UID</key><integer>7</integer><key>x</key><true/></dict>', b'<STRING>x</STRING>',
    b'<array><array><string>x</string></array>', b'<array></dict>',
]
DOCUMENTS = [
    b'', b'   ', b'\n', b'<', b'<plist/>', b'<plist></plist>', b'<plist><string>a</string></plist>',
    b'<plist version="1.0"><string>a</string>', b'<string>a</string>', b'<dict/>', b'<array/>',
    b'<?xml version="1.0"?><string>a</string>', b'<?xml version="1.0"?>', b'<!-- c -->', b'<!-- c --><plist><true/></plist>',
    b'<!DOCTYPE plist><plist><true/></plist>', b'<!DOCTYPE plist [<!ENTITY a "b">]><plist><string>&a;</string></plist>',
    b'<!DOCTYPE plist [<!ENTITY a "b">]><plist><string>x</string></plist>',
    b'<!DOCTYPE plist [<!ELEMENT a (b)>]><plist><string>x</string></plist>',
    b'<!DOCTYPE plist SYSTEM "file://localhost/System/Library/DTDs/PropertyList.dtd"><plist><string>x</string></plist>',
    b'\xef\xbb\xbf<plist><string>bom</string></plist>', b' <plist><string>sp</string></plist>',
    b'<plist><string>a</string></plist>trailing', b'<plist><string>a</string></plist><plist><string>b</string></plist>',
    b'<?xml version="1.0" encoding="ISO-8859-1"?><plist><string>\xe9</string></plist>',
    b'\xff\xfe' + '<?xml version="1.0" encoding="UTF-16"?><plist><string>é</string></plist>'.encode("utf-16-le"),
    '<?xml version="1.0" encoding="UTF-16BE"?><plist><string>é</string></plist>'.encode("utf-16-be"),
    '<?xml version="1.0" encoding="UTF-16LE"?><plist><string>é</string></plist>'.encode("utf-16-le"),
    b'\xff\xfe\x00\x00' + '<?xml version="1.0" encoding="UTF-32"?><plist><string>é</string></plist>'.encode("utf-32-le"),
    b'\xff\xfe' + '<plist><string>é</string></plist>'.encode("utf-16-le"),
    b'<?xml version="1.0" encoding="windows-1252"?><plist><string>\x80</string></plist>',
    b'<?xml version="1.0" encoding="macintosh"?><plist><string>\x80</string></plist>',
    b'<?xml version="1.0" encoding="bogus"?><plist><string>a</string></plist>',
    b"<?xml version='1.0' encoding='utf-8'?><plist><string>a</string></plist>",
    b'<?xml version="1.0" encoding="UTF-8"?><plist><string>\xff</string></plist>',
    b'<?xml version="2.0"?><plist><string>v2</string></plist>', b'<plist version="7"><string>v</string></plist>',
    b'<plist><string>a\x00b</string></plist>', b'<plist><string>a\x01b</string></plist>',
    b'<plist><string>a\xef\xbf\xbeb</string></plist>', b'<plist><string>\r\nx\ry</string></plist>', b'<html></html>',
    b'<plist><string>]]></string></plist>', b'<plist ><array ><string >q</string ></array ></plist >',
    b'<?xml version="1.0" encoding="UTF-7"?><plist><string>a</string></plist>',
    b'<?xml version="1.0" encoding="US-ASCII"?><plist><string>\xe9</string></plist>',
    b'<?xml version="1.0" encoding="UTF-8"?><plist><string>\xed\xa0\x80</string></plist>', b'<string>a</string>junk',
    b'<string>a</string><string>b</string>', b'<plist><string a=">">x</string></plist>', b'<plist><string/ >x</plist>',
    b'<plist><string / ></plist>', b'<plist><string/></plist>', b'<plist><string a/></plist>',
    b'<plist><stringx>a</stringx></plist>', b'<plist><array a="/"/></plist>', b'<plist><true a="b"></true></plist>',
    b'<plist><true/x></plist>', b'<plist><plist/></plist>', b'<plist><?pi?><string>a</string><?pi?></plist>',
    b'<?pi?><plist><string>a</string></plist>', b'<plist><string>a</string></plist >', b'<plist><string>a</string></plis>',
    b'<plist><string>a</string></plistx>', b'<plist><dict><key>a</key></dict></plist>',
    b'<plist><!DOCTYPE x><string>a</string></plist>', b'<!doctype plist><plist><true/></plist>', b'<!FOO><plist><true/></plist>',
    b'<!DOCTYPE plist PUBLIC "a>b"><plist><true/></plist>', b'<plist><string>&#x;</string></plist>',
    b'<plist><string>&#;</string></plist>', b'<plist><string>&#65</string></plist>', b'<plist><string>&#x41</string></plist>',
    b'<plist><string>&#99999999999999;</string></plist>', b'<plist><string>&LT;</string></plist>',
    b'<plist><string><![CDATA[</string></plist>', b'<plist><string><![CDATA[a]]]]></string></plist>',
    b'<plist><![CDATA[<string>a</string>]]></plist>', b'<plist><data>YW<!-- c -->Jj</data></plist>',
    b'<plist><data>&#65;</data></plist>', b'<plist><array><!-- unterminated <string>a</string></array></plist>',
    b'<plist><array><!-- a -- b --><string>a</string></array></plist>', b'<plist><date>2001-01-01T00:00:00Z',
    b'<plist><integer>5', b'<plist><real>5', b'<plist><data>YWJj', b'<plist><string>a', b'<plist><key', b'<plist><array>',
    b'<plist><dict><key>a', b'<', b'<p', b'<?xml', b'<?xml ?>', b'<!', b'<!-', b'<!--', b'<plist', b'<array/>x',
    b'<dict><key>a</key>x<true/></dict>', b'<plist><true></plist>', b'<plist><true', b'<plist><false></false></plist>',
    b'<plist><a/></plist>', b'<plist></string></plist>', b'</plist>', b'<plist><array></array',
    b'<plist><string></string></plist>', b'<plist>\x0b<string>a</string></plist>', b'<plist>\xc2\xa0<string>a</string></plist>',
    b'<a', b'<ab>', b'<ab', b'<ab cd', b'<DICT/>', b'<dictx/>', b'<arrays></arrays>', b'  <abcd>', b'/* c */ <abcd>',
    b'/* c */ <plist><true/></plist>',
]
OLD = [
    b'abc', b'"abc"', b"'abc'", b'{a=b;}', b'{a=b}', b'{a=b;c=d;}', b'{a;}', b'{a;b=c;}', b'a=b;', b'a=b;\nc=d;',
    b'"a b" = "c d";', b'a;', b'a', b'a b', b'(a,b)', b'(a,b,)', b'(a b)', b'()', b'{}', b'<abcd>', b'<ab cd>', b'<abc>',
    b'<ab zz>', b'<>', b'< 61 62 >', b'/* c */ abc', b'// c\nabc', b'{a=/* c */b;}', b'"unterminated', b'{a=b', b'(a', b'(a,,b)',
    b'"a\\nb\\t\\"\\\\"', b'"\\101\\344\\u00e9\\U00E9\\x"', b'"\\U12"', b'a-b.c/d_e:f$g', b'@abc', b'{a={b=(c,<00>);};}',
    b'"a"\n"b"', b'{"a"="b";"a"="c";}', b'a=b;a=c;', b'{a=b;} junk', b'abc // x', b'<*I5>', b'<*R1.5>', b'<*BY>',
    b'<*D2001-01-01 00:00:00 +0000>', b'{a=<*I5>;}', b'\xc3\xa9', b'"\xc3\xa9"', b'"\xe9"', b'\xff\xfe"\x00\xe9\x00"\x00',
    b'a=\xc3\xa9;', b'{a=b;;}', b'{=b;}', b'{(a)=b;}', b'{<00>=b;}', b'/* only comment */', b'// only', b'/* unterminated', b';',
    b'=', b'a=;', b'a=b', b'"a"="b";\n/* c */\n"c"="d";', b'{a=b; /* x */ }', b'0', b'1.5', b'-5', b'a+b', b'a*b', b'a&b', b'a~b',
    b'#a', b'a,b', b'"\\a\\b\\f\\r\\v\\e"', b'"\\0"', b'"\\8"', b'"\\400"', b'"\\\n"', b'"line1\nline2"', b"'it''s'", b'\'a"b\'',
    b'"a\'b"', b"'a\\'b'", b'{ a = b; } // x', b'<61>a', b'(<61>)', b'"\\u12345"', b'{"k" = "v"; "k2";}', b'\xef\xbb\xbf"bom"',
    b'\xef\xbb\xbfa=b;', b'"a"= "b" ;', b'a=(1,2);b={c=d;};', b'\x00', b'a\x00b', b'bplist00', b'bplist', b'\xe2\x80\xa8abc',
    b'abc\xe2\x80\xa8', b'\xc2\xa0abc', b'(a, /*x*/ b)', b'(\n\na\n\nb)', b'{\na=b;\nc d;\n}',
]
REALS = [
    '.5', '5.', '+1.5', '-.5', '1e', '1e+', 'e5', '1E5', '+nan', '-nan', '-infinity', '+inf', 'infin', 'nan(1)', '1.5.5', '0',
    '00', '- 5', '1e-400', '.', '1_0',
]
DATES = [
    '1-01-01T00:00:00Z', '01-01-01T00:00:00Z', '99999999999-01-01T00:00:00Z', '2147483647-01-01T00:00:00Z',
    '2147483648-01-01T00:00:00Z', '2001-00-00T00:00:00Z', '2001-99-99T99:99:99Z', '--1-01-01T00:00:00Z', '+2001-01-01T00:00:00Z',
    '2001-01-01T00:00:00ZZ', '2001-01-01t00:00:00z', '-2147483648-01-01T00:00:00Z', '0000-01-01T00:00:00Z',
    '-001-01-01T00:00:00Z', '1900-03-01T00:00:00Z', '2400-02-29T00:00:00Z',
]
INTEGERS = [
    '0X1f', '0x', '+', '-', '', '+ 5', '+\t5', '0x7fffffffffffffff', '0xffffffffffffffff', '0x10000000000000000',
    '-0x8000000000000000', '-0xffffffffffffffff', '0b1', '017', '١', '+-5', '0x+5',
]


def binary(objects, offsets=None, offset_size=1, reference_size=1, count=None, root=0, table=None, extra=b"", header=b"bplist00",
           unused=b"\0" * 6):
    """A file in the binary format of objects in bytes."""
    body, found = b"", []
    for one in objects:
        found.append(8 + len(body))
        body += one
    found = found if offsets is None else offsets
    trailer = struct.pack(">QQQ", len(found) if count is None else count, root, 8 + len(body) if table is None else table)
    places = b"".join(offset.to_bytes(offset_size, "big") for offset in found)
    return header + body + places + extra + unused + bytes([offset_size, reference_size]) + trailer


def array(numbers):
    return bytes([0xA0 | len(numbers)]) + bytes(numbers)


BINARY = {
    'null':binary([b'\0']),
    'false':binary([b'\x08']),
    'true':binary([b'\x09']),
    'fill':binary([b'\x0f']),
    '01':binary([b'\x01']),
    'url0c':binary([b'\x0c\x51a']),
    'uuid0e':binary([b'\x0e'+b'a'*16]),
    'int0':binary([b'\x10\xff']),
    'int1':binary([b'\x11\xff\xff']),
    'int2':binary([b'\x12\xff\xff\xff\xff']),
    'int3':binary([b'\x13'+b'\xff'*8]),
    'int4':binary([b'\x14'+b'\0'*8+b'\xff'*8]),
    'int4neg':binary([b'\x14'+b'\xff'*16]),
    'int4big':binary([b'\x14'+b'\0'*7+b'\1'+b'\xff'*8]),
    'int4pos':binary([b'\x14'+b'\0'*15+b'\5']),
    'int5':binary([b'\x15'+b'\0'*32]),
    'r0':binary([b'\x20\0']),
    'r1':binary([b'\x21\0\0']),
    'r2':binary([b'\x22\x3f\x80\0\0']),
    'r3':binary([b'\x23\x3f\xf0'+b'\0'*6]),
    'r4':binary([b'\x24'+b'\0'*16]),
    'd3':binary([b'\x33'+b'\0'*8]),
    'd2':binary([b'\x32'+b'\0'*4]),
    'dnan':binary([b'\x33\x7f\xf8'+b'\0'*6]),
    'd30':binary([b'\x30']),
    'data':binary([b'\x42ab']),
    'dataF':binary([b'\x4f\x10\x02ab']),
    'dataFF':binary([b'\x4f\x13'+b'\0'*7+b'\2ab']),
    'dataFneg':binary([b'\x4f\x13'+b'\xff'*8]),
    'dataFbad':binary([b'\x4f\x51ab']),
    'data128':binary([b'\x4f\x14'+b'\0'*15+b'\2ab']),
    'datalong':binary([b'\x4f\x12\x7f\xff\xff\xff']),
    'datashort':binary([b'\x4eab']),
    'str':binary([b'\x52ab']),
    'strhigh':binary([b'\x51\xe9']),
    'strnul':binary([b'\x53a\0b']),
    'u16':binary([b'\x62\0a\0b']),
    'u16lone':binary([b'\x61\xd8\0']),
    'u16short':binary([b'\x62\0a']),
    'u8_7':binary([b'\x72ab']),
    'uid1':binary([b'\x80\7']),
    'uid4':binary([b'\x83\0\0\0\7']),
    'uid8':binary([b'\x87'+b'\0'*7+b'\7']),
    'uid3':binary([b'\x82\0\0\7']),
    'uid8big':binary([b'\x87'+b'\xff'*8]),
    'uid16':binary([b'\x8f'+b'\0'*15+b'\7']),
    'arr':binary([array([1,2]),b'\x51a',b'\x51b']),
    'arr0':binary([b'\xa0']),
    'arrF':binary([b'\xaf\x10\x01\x01',b'\x51a']),
    'arrout':binary([array([5])]),
    'arrself':binary([array([0])]),
    'arrcyc':binary([array([1]),array([0])]),
    'arrlong':binary([b'\xaf\x12\xff\xff\xff\xff']),
    'ordset':binary([b'\xb1\1',b'\x51a']),
    'set':binary([b'\xc1\1',b'\x51a']),
    'setcyc':binary([b'\xc1\0']),
    'dict':binary([b'\xd1\1\2',b'\x51a',b'\x51b']),
    'dict0':binary([b'\xd0']),
    'dictnonstr':binary([b'\xd1\1\2',b'\x10\5',b'\x51b']),
    'dictkeyarr':binary([b'\xd1\1\2',b'\xa0',b'\x51b']),
    'dictdup':binary([b'\xd2\1\1\2\3',b'\x51a',b'\x51b',b'\x51c']),
    'dictcyc':binary([b'\xd1\1\0',b'\x51a']),
    'dictshort':binary([b'\xd2\1\2',b'\x51a']),
    'dictnullv':binary([b'\xd1\1\2',b'\x51a',b'\0']),
    'e0':binary([b'\xe0']),
    'f0':binary([b'\xf0']),
    '90':binary([b'\x90']),
    'top':binary([b'\x51a',b'\x51b'],root=1),
    'topout':binary([b'\x51a'],root=1),
    'num0':binary([b'\x51a'],count=0),
    'numbig':binary([b'\x51a'],count=2),
    'numhuge':binary([b'\x51a'],count=1<<62),
    'numhuge2':binary([b'\x51a'],count=(1<<64)-1),
    'osz0':binary([b'\x51a'],offset_size=1)[:-26]+b'\0\1'+struct.pack('>QQQ',1,0,10),
    'rsz0':binary([b'\x51a'],reference_size=0),
    'osz3':binary([b'\x51a'],offset_size=3),
    'osz8':binary([b'\x51a'],offset_size=8),
    'osz9':binary([b'\x51a'],offset_size=9),
    'osz255':binary([b'\x51a'],offset_size=255),
    'rsz3':binary([b'\xa1\0\0\1',b'\x51a'],reference_size=3),
    'rsz255':binary([b'\x51a'],reference_size=255),
    'tab8':binary([],offsets=[0],table=8),
    'tab0':binary([b'\x51a'],table=0),
    'tabbig':binary([b'\x51a'],table=1000),
    'tabhuge':binary([b'\x51a'],table=(1<<64)-1),
    'tabbefore':binary([b'\x51a'],table=9),
    'extra':binary([b'\x51a'],extra=b'xx'),
    'off7':binary([b'\x51a'],offsets=[7]),
    'off0':binary([b'\x51a'],offsets=[0]),
    'offtab':binary([b'\x51a'],offsets=[10]),
    'offinside':binary([b'\x52\x51a'],offsets=[9]),
    'offmid2':binary([b'\x52ab'],offsets=[8,9]),
    'v01':binary([b'\x51a'],header=b'bplist01'),
    'v0x':binary([b'\x51a'],header=b'bplist0x'),
    'v10':binary([b'\x51a'],header=b'bplist10'),
    'v15':binary([b'\x51a'],header=b'bplist15'),
    'unused':binary([b'\x51a'],unused=b'abcdef'),
    'sort1':binary([b'\x51a'],unused=b'\0\0\0\0\0\1'),
    'trunc':binary([b'\x51a'])[:-1],
    'hdronly':b'bplist00',
    'hdr31':b'bplist00'+b'\0'*31,
    'hdr32':b'bplist00'+b'\0'*32,
    'intoverlap':binary([b'\x13\0']),
    'strtotable':binary([b'\x54ab']),
    'same2':binary([array([1,1]),b'\x51a']),
    'lead':b'  '+binary([b'\x51a']),
    'trail':binary([b'\x51a'])+b'\n',
    'many256':binary([b'\xaf\x11\1\0'+bytes(range(1,256))+b'\1']+[b'\x51a']*255,offset_size=2),
    'rsz1num257':binary([b'\xa0']+[b'\x51a']*256,offset_size=2),
}


def deep(count):
    """Containers in containers, in each format."""
    yield f"{count} arrays in XML", b"<array>" * count + b"</array>" * count
    yield f"{count} dictionaries in XML", b"<dict><key>a</key>" * count + b"<true/>" + b"</dict>" * count
    yield f"{count} old arrays", b"(" * count + b")" * count
    yield f"{count} old dictionaries", b"{a=" * count + b"b" + b";}" * count
    arrays = [b"\xa1" + struct.pack(">H", i + 1) for i in range(count - 1)] + [b"\xa0"]
    yield f"{count} binary arrays", binary(arrays, offset_size=2, reference_size=2)


INPUTS = [(f"element {one!r}", HEAD + one + b"\n</plist>\n") for one in ELEMENTS]
INPUTS += [(f"document {one!r}", one) for one in DOCUMENTS] + [(f"text {one!r}", one) for one in OLD]
for kind, texts in (("real", REALS), ("date", DATES), ("integer", INTEGERS)):
    INPUTS += [(f"{kind} {one}", f"<{kind}>{one}</{kind}>".encode()) for one in texts]
INPUTS += [(f"binary {name}", content) for name, content in BINARY.items()]
for levels in (2, 511, 512, 513, 600):
    INPUTS += deep(levels)

# What each refuses or takes that the other does not.
DIFFERENT = {name: "refused" for name, content in INPUTS if name in {
    # Fields of a date that there are not, or a year of more than 32 bits: Core Foundation takes them for another date.
    "element b'<date>1999-13-01T00:00:00Z</date>'", "date 99999999999-01-01T00:00:00Z", "date 2147483648-01-01T00:00:00Z",
    "date 2001-00-00T00:00:00Z", "date 2001-99-99T99:99:99Z", "date -2147483648-01-01T00:00:00Z",
    # Sets, and keys that are no strings, are in no property list that could be written again.
    "binary set", "binary dictnonstr",
    # Numbers of more than 8 bytes.
    "binary osz9", "binary osz255", "binary rsz255",
    # One level of containers more in formats other than XML.
    "513 old arrays", "513 binary arrays",
    "document b'<?xml version=\"1.0\" encoding=\"UTF-7\"?><plist><string>a</string></plist>'",
}}
DIFFERENT |= {
    # UTF-16 without a byte order mark, and another encoding.
    **{name: "'\\00e9'" for name, content in INPUTS if content[:2] in (b"\0<", b"<\0") and name.startswith("document")},
    "document b'<?xml version=\"1.0\" encoding=\"macintosh\"?><plist><string>\\x80</string></plist>'": "'\\00c4'",
    # Brackets in quotes.
    "document b'<plist><string a=\">\">x</string></plist>'": "'x'",
    "document b'<!DOCTYPE plist PUBLIC \"a>b\"><plist><true/></plist>'": "true",
    # Integers of more than 64 bits with a sign: Core Foundation has a private type.
    "element b'<integer>9223372036854775808</integer>'": "r0x1p+63",
    "element b'<integer>18446744073709551615</integer>'": "r0x1p+64",
    "integer 0xffffffffffffffff": "r0x1p+64",
    "binary int4": "r0x1p+64",
    "binary int4big": "r0x1p+65",
    # UIDs of keyed archives: the same.
    "element b'<dict><key>CF$UID</key><integer>7</integer></dict>'": "{'CF$UID':7,}",
    "element b'<dict><key>CF$UID</key><integer>-7</integer></dict>'": "{'CF$UID':-7,}",
    "element b'<dict><key>CF$UID</key><integer>4294967296</integer></dict>'": "{'CF$UID':4294967296,}",
    **{f"binary {name}": "{'CF$UID':7,}" for name in ("uid1", "uid4", "uid8", "uid3", "uid16")},
}
