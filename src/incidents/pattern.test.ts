import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { normalised, parsePatternId, patternId, patternOf } from './pattern.ts'

/** Notes as the components of Kubernetes write them, and what is left of them. */
const NOTES: readonly (readonly [string, string])[] = [
  [
    'Back-off restarting failed container web in pod web-7d9f8b6c5-x2k4q_shop(0b9d3a51-6c1e-4b0e-9f0a-5d1c8f2e7a40)',
    'Back-off restarting failed container web in pod *(*)',
  ],
  [
    'Back-off restarting failed container web in pod web-bcdfg_shop(0b9d3a51-6c1e-4b0e-9f0a-5d1c8f2e7a40)',
    'Back-off restarting failed container web in pod *(*)',
  ],
  [
    '0/5 nodes are available: 3 Insufficient cpu, 2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }. preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod.',
    '* nodes are available: * Insufficient cpu, * node(s) had untolerated taint {node.kubernetes.io/unreachable: }. preemption: * nodes are available: * No preemption victims found for incoming pod.',
  ],
  [
    'Liveness probe failed: Get "http://10.1.2.3:8080/healthz": dial tcp 10.1.2.3:8080: connect: connection refused',
    'Liveness probe failed: Get *: dial tcp *: connect: connection refused',
  ],
  [
    'Readiness probe failed: Get "http://[fd00::17]:8080/ready": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
    'Readiness probe failed: Get *: context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
  ],
  [
    'Liveness probe failed: HTTP probe failed with statuscode: 503',
    'Liveness probe failed: HTTP probe failed with statuscode: *',
  ],
  ['Created pod: web-7d9f8b6c5-x2k4q', 'Created pod: *'],
  ['Created pod: web-bcdfg', 'Created pod: *'],
  ['create Pod web-0 in StatefulSet web successful', 'create Pod * in StatefulSet web successful'],
  ['Scaled up replica set web-7d9f8b6c5 to 3 from 2', 'Scaled up replica set * to * from *'],
  ['Scaled down replica set web-7d9f8b6c5 from 3 to 0', 'Scaled down replica set * from * to *'],
  [
    'Successfully pulled image "shop/web:2.14" in 1.2s (1m1.3s including waiting). Image size: 123 bytes.',
    'Successfully pulled image * in * (* including waiting). Image size: * bytes.',
  ],
  ['Successfully assigned shop/web-0 to node-03', 'Successfully assigned * to *'],
  ['Marking for deletion Pod shop/web-7d9f4-x2', 'Marking for deletion Pod *'],
  ['deleting pod for node pod/web-7d9f8b6c5-x2k4q', 'deleting pod for node *'],
  [
    'Saw completed job: report-29012345, condition: Complete',
    'Saw completed job: *, condition: Complete',
  ],
  [
    'Missed scheduled time to start a job: Mon, 02 Jan 2006 15:04:05 +0000',
    'Missed scheduled time to start a job: *, * * * * *',
  ],
  [
    'MountVolume.SetUp failed for volume "data": rpc error: code = DeadlineExceeded desc = context deadline exceeded',
    'MountVolume.SetUp failed for volume *: rpc error: code = DeadlineExceeded desc = context deadline exceeded',
  ],
  [
    "Multi-Attach error for volume 'pvc-a' can't be attached until 2024-01-31T10:00:00Z",
    "Multi-Attach error for volume * can't be attached until *",
  ],
  [
    'Error: failed to create containerd task: exec: "sh": executable file not found in $PATH: unknown',
    'Error: failed to create containerd task: exec: *: executable file not found in $PATH: unknown',
  ],
  [
    'The node was low on resource: memory. Threshold quantity: 100Mi, available: 87 MiB.',
    'The node was low on resource: memory. Threshold quantity: *, available: *.',
  ],
  ['read tcp 10.0.0.1:443->10.0.0.2:51234: i/o timeout', 'read tcp *->*: i/o timeout'],
  ['exit code:137 code=1 -5 +7% 95% (x3)', 'exit code:* code=* * * * (*)'],
  ['image deadbeef at sha256:0123abcd', 'image * at *'],
  ['(combined from similar events): Created pod: web-7d9f8b6c5-x2k4q', 'Created pod: *'],
  ['(combined from similar events):  a', 'a'],
  ['  a\t\n b  ', 'a b'],
  ['{\\"error\\":\\"not found\\"}', '{\\*:\\*}'],
  ['non-https and web-https', 'non-https and web-https'],
  ['größer als 5 Ähren', 'größer als * Ähren'],
]

describe('the pattern of a note', () => {
  test('ends where notes are cut, whatever is there', () => {
    const ends = [
      '-1',
      '+1',
      '.1',
      '1.',
      "'a'",
      '"a"',
      '\\"',
      '%41',
      ' -1',
      '-',
      '1-1',
      'a-b',
      '::1',
    ]
    for (let length = 1_018; length <= 1_026; length++) {
      for (const end of ends) {
        const cut = `${'x'.repeat(length)}${end}${'1'.repeat(9)}`
        assert.equal(patternOf(cut), patternOf(cut.slice(0, 1_024)), `${length} ${end}`)
      }
    }
  })

  for (const [note, expected] of NOTES) {
    test(`of ${JSON.stringify(note.slice(0, 70))}`, () => {
      assert.equal(normalised(note), expected)
    })
  }

  test('is the same for notes that differ only in numbers, ids and quoted texts', () => {
    const wholes = ids().map((id) => `Back-off in pod ${id} of "${id}" since ${id}`)
    assert.deepEqual(new Set(wholes.map(normalised)), new Set(['Back-off in pod * of * since *']))
    assert.equal(new Set(wholes.map(patternOf)).size, 1)
  })

  test('differs for notes that differ in a word, in its order or in a mark', () => {
    const notes = [
      'Liveness probe failed',
      'Readiness probe failed',
      'Readiness probe failed:',
      'probe Readiness failed',
      'Readiness probe failed 5',
      'Readiness probe failed 5 5',
      '5 Readiness probe failed',
      'Readinessprobe failed',
      'read-only',
      'readonly',
    ]
    assert.equal(new Set(notes.map(patternOf)).size, notes.length)
  })

  test('is equal where the normalised note is equal, for any notes', () => {
    const part = fc.oneof(
      fc.constantFrom(
        'pod',
        'failed',
        "can't",
        'web-bcdfg',
        'a:b',
        ' ',
        '  ',
        ', ',
        '5',
        '1.5 GiB',
      ),
      fc.constantFrom('"x y"', "'", '"', '`', '\\"', '-', ':', '/', '10.0.0.1:80', 'Jan', '%', 'é'),
      fc.string({ maxLength: 6, unit: 'binary' }),
    )
    fc.assert(
      fc.property(fc.array(fc.array(part, { maxLength: 12 }), { maxLength: 12 }), (notes) => {
        assertAgreement(notes.map((parts) => parts.join('')))
      }),
      { numRuns: 500 },
    )
  })

  test('is 0 only for an empty note', () => {
    assert.equal(patternOf(''), 0)
    assert.notEqual(patternOf(' '), 0)
    assert.equal(patternOf(' '), patternOf('\n\t'))
  })

  test('does not read more than 1,024 characters', () => {
    const long = 'word '.repeat(1_000)
    assert.equal(patternOf(`${long}a`), patternOf(`${long}b`))
    assert.notEqual(patternOf(`a${long}`), patternOf(`b${long}`))
  })

  test('takes time in proportion to the length, even for quotes that are never closed', () => {
    const hostile = [" 'a", '"\\"', '`', '-1']
    const cpuMsOf = (note: string): number => {
      const before = process.threadCpuUsage()
      for (let turn = 0; turn < 4_000; turn++) patternOf(note)
      const { user, system } = process.threadCpuUsage(before)
      return (user + system) / 1_000
    }
    for (const text of hostile) {
      const noteOf = (length: number) => text.repeat(length / text.length)
      cpuMsOf(noteOf(1_000))
      const [shortMs, longMs] = [cpuMsOf(noteOf(125)), cpuMsOf(noteOf(1_000))]
      // Eight times in proportion, 64 times in the square.
      assert.ok(longMs < 24 * shortMs + 50, `${text}: ${shortMs} ms, ${longMs} ms`)
    }
  })

  test('has an id of eight hexadecimal digits', () => {
    assert.equal(patternId(0x1f), '0000001f')
    assert.equal(parsePatternId('0000001f'), 0x1f)
    assert.equal(parsePatternId('ffffffff'), 0xffffffff)
    for (const text of ['', '1f', '0000001F', '0000001g', '000000001f', ' 000001f']) {
      assert.equal(parsePatternId(text), undefined, text)
    }
    fc.assert(
      fc.property(fc.string(), (note) => {
        const pattern = patternOf(note)
        assert.equal(parsePatternId(patternId(pattern)), pattern)
      }),
    )
  })
})

function assertAgreement(notes: readonly string[]): void {
  const patterns = new Map<string, number>()
  for (const note of notes.filter((text) => text !== '')) {
    const text = normalised(note)
    const pattern = patternOf(note)
    assert.equal(patterns.get(text) ?? pattern, pattern, note)
    patterns.set(text, pattern)
  }
  assert.equal(new Set(patterns.values()).size, patterns.size)
}

function ids(): readonly string[] {
  return [
    '7',
    '12.5',
    '1m30s',
    '5.2s',
    '95%',
    '512Mi',
    '10.0.0.1',
    '10.0.0.1:8080',
    '2024-01-31T10:00:00.123Z',
    '2024-01-31T10:00:00+02:00',
    '0b9d3a51-6c1e-4b0e-9f0a-5d1c8f2e7a40',
    '3f2a91c',
    'deadbeefcafe',
    '7d9f8b6c5-x2k4q',
    'web-7d9f8b6c5-x2k4q',
    'pod/web-7d9f8b6c5-x2k4q',
    'shop/web-0',
    'shop/web-bcdfg',
    'web-bcdfghjkl',
    'registry.example/shop/web:v1.2@sha256:0123abcd',
    'http://10.0.0.1:80/healthz',
  ]
}
