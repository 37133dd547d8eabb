import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { StatusError } from '../status.ts'
import { parseShardSelector, type ShardSelector } from './shard-selector.ts'

const END = '0x10000000000000000'

function range(start: string, end: string, field = 'object.metadata.uid'): string {
  return `shardRange(${field}, '${start}', '${end}')`
}

function hex(value: bigint): string {
  return `0x${value.toString(16).padStart(16, '0')}`
}

function parsed(text: string): ShardSelector {
  const selector = parseShardSelector(text)
  assert.ok(selector)
  return selector
}

describe('the hash of a shard', () => {
  const vectors = [
    ['', 0xcbf29ce484222325n],
    ['a', 0xaf63dc4c8601ec8cn],
    ['foobar', 0x85944171f73967e8n],
  ] as const
  for (const [value, hash] of vectors) {
    test(`of ${JSON.stringify(value)} is that of FNV-1a`, () => {
      assert.equal(parsed(range(hex(hash), hex(hash + 1n))).matches(Buffer.from(value)), true)
      assert.equal(parsed(range(hex(0n), hex(hash))).matches(Buffer.from(value)), false)
      assert.equal(parsed(range(hex(hash + 1n), END)).matches(Buffer.from(value)), false)
    })
  }

  test('is of the bytes in UTF-8, and agrees with 64-bit integers', () => {
    for (const value of ['ä', '0d0a6c1e-3b1f-4d0e-9a55-0f2f6f0c7a11', 'kube-system', '\u{1f600}']) {
      let hash = 0xcbf29ce484222325n
      for (const byte of Buffer.from(value)) {
        hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn
      }
      assert.equal(
        parsed(range(hex(hash), hex(hash + 1n))).matches(Buffer.from(value)),
        true,
        value,
      )
    }
  })
})

describe('a shard selector', () => {
  test('divides all uids between its ranges', () => {
    const bounds = ['0x0000000000000000', '0x5555555555555555', '0xaaaaaaaaaaaaaaaa', END] as const
    const shards = [0, 1, 2].map((at) => parsed(range(bounds[at] ?? '', bounds[at + 1] ?? '')))
    const counts = [0, 0, 0]
    for (let at = 0; at < 3000; at++) {
      const uid = randomUUID()
      const found = shards.map((shard) => shard.matches(Buffer.from(uid)))
      assert.equal(found.filter(Boolean).length, 1, uid)
      counts[found.indexOf(true)] = (counts[found.indexOf(true)] ?? 0) + 1
    }
    assert.ok(
      counts.every((count) => count > 800),
      String(counts),
    )
  })

  test('matches when one of its ranges does', () => {
    const a = range('0xaf63dc4c8601ec8c', '0xaf63dc4c8601ec8d')
    const foobar = range('0x85944171f73967e8', '0x85944171f73967e9')
    const both = parsed(`${a} || ${foobar}`)
    assert.deepEqual(
      ['a', 'foobar', 'b'].map((value) => both.matches(Buffer.from(value))),
      [true, true, false],
    )
  })

  test('has a normal form', () => {
    const text = `  ( shardRange (object.metadata.namespace,"0x00000000000000aa" ,'${END}'))||
      ((${range('0x0000000000000000', '0x0000000000000001', 'object.metadata.namespace')}))`
    const selector = parsed(text)
    assert.equal(selector.field, 'object.metadata.namespace')
    assert.equal(
      selector.text,
      `${range('0x00000000000000aa', END, 'object.metadata.namespace')} || ` +
        range('0x0000000000000000', '0x0000000000000001', 'object.metadata.namespace'),
    )
  })

  test('is absent when the text is empty', () => {
    assert.equal(parseShardSelector(''), undefined)
  })
})

describe('an invalid shard selector is a 400', () => {
  const whole = range('0x0000000000000000', END)
  const cases: readonly (readonly [string, RegExp])[] = [
    [' ', /expected shardRange\(.*found nothing/],
    ['uid > 3', /found "uid > 3"/],
    [`${whole} && ${whole}`, /expected shardRange/],
    [`${whole} ||`, /found nothing/],
    [`(${whole}`, /parentheses do not match/],
    [`${whole})`, /parentheses do not match/],
    [`${whole}) || (${whole}`, /parentheses do not match/],
    ["shardRange(object.metadata.uid, '0x0')", /expected shardRange/],
    ['shardRange(object.metadata.uid, 0, 8)', /expected shardRange/],
    [
      range('0x0', '0x8', 'object.metadata.name'),
      /unsupported field path "object.metadata.name"; supported: object.metadata.uid, object.metadata.namespace/,
    ],
    [range('0x0', END), /hexStart must be .* got "0x0" \(did you mean "0x0000000000000000"\?\)/],
    [range('0x0000000000000000', '8000000000000000'), /hexEnd must be .* got "8000000000000000"$/],
    [range('0x000000000000000A', END), /hexStart must be .* lower case/],
    [range('0x0000000000000000', '0x10000000000000001'), /hexEnd must be/],
    [range('0x8000000000000000', '0x8000000000000000'), /must be less than end/],
    [range(END, END), /must be less than end/],
    [
      `${whole} || ${range('0x0000000000000000', END, 'object.metadata.namespace')}`,
      /all shard ranges must use the same field, got "object.metadata.uid" and "object.metadata.namespace"/,
    ],
    [Array(101).fill(range('0x0000000000000000', END)).join('||'), /at most/],
    [' '.repeat(9000), /a shard selector has at most 8192 bytes/],
  ]
  for (const [text, message] of cases) {
    test(text.slice(0, 80), () => {
      assert.throws(
        () => parseShardSelector(text),
        (error) =>
          error instanceof StatusError && error.code === 400 && message.test(error.message),
      )
    })
  }

  test('however many parentheses and spaces it has', () => {
    const startedAt = performance.now()
    for (const filler of ['(', ' ', 'shardRange(', `${whole} `]) {
      assert.throws(() => parseShardSelector(filler.repeat(8000 / filler.length)))
    }
    assert.ok(performance.now() - startedAt < 1000)
  })
})
