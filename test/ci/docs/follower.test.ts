/** The reader notices what is wrong with a page. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { cannotFollow, Follower } from './follower.ts'
import { isShown } from './shown.ts'
import { stepsOf } from './steps.ts'

const block = (language: string, ...lines: readonly string[]): string =>
  ['```'.concat(language), ...lines, '```', ''].join('\n')

describe('a reader', { skip: cannotFollow }, () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-page-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const read = async (...blocks: readonly string[]): Promise<void> => {
    await using reader = await Follower.create()
    const page = join(folder, 'page.md')
    await writeFile(page, blocks.join('\n'))
    await reader.follow(page)
  }

  test('follows a page with variables, functions, pipes and two terminals', () =>
    read(
      block('sh', 'name=you', 'hello() { echo "hello $1"; }', 'export PLACE=home'),
      block('sh', 'hello "$name" | cat', 'echo "$PLACE"'),
      block('text', 'hello you', 'home'),
      block('sh other', 'echo "place: $PLACE"; touch it-runs; sleep 60'),
      block('text', 'place:'),
      block('sh', 'ls it-runs'),
      block('text', 'it-runs'),
    ))

  test('goes on in a terminal after Ctrl-C', () =>
    read(
      block('sh other', 'sleep 60'),
      '<!-- follow: ctrl-c other -->\n',
      block('sh other', 'echo again; sleep 60'),
      block('text', 'again'),
    ))

  test('rejects a command that fails, with its line', () =>
    assert.rejects(
      read('one', block('sh', 'true', 'ls nowhere', 'true')),
      /page\.md:2: .*line 2 of this block failed\n.*\n.*nowhere/,
    ))

  test('rejects a failure inside a pipe', () =>
    assert.rejects(read(block('sh', 'false | cat')), /failed/))

  test('rejects output that is not the one of the page', () =>
    assert.rejects(
      read(block('sh', 'echo one', 'echo two'), block('text', 'one')),
      /page\.md:6: .*shows something else/,
    ))
})

test('three dots stand for lines, or for text in a line; ages, times and ports do not count', () => {
  const shown = (page: string, printed: string): boolean => isShown(page, printed, '/tmp/reader')
  assert.ok(shown('a\n...\nd', 'a\nb\nc\nd\n'))
  assert.ok(shown('a\n...\nd', 'a\nd'))
  assert.ok(!shown('a\n...\nd', 'a\nb'))
  assert.ok(shown('It is ... now', 'It is late now'))
  assert.ok(!shown('It is ... now', 'It is late'))
  assert.ok(shown('LAST  NAME\n4s   x', 'LAST NAME\n1m32s x\n'))
  assert.ok(!shown('4s x', '4s y'))
  assert.ok(shown('2026-01-02T03:04:05Z localhost:1234', '2027-11-12T13:14:15Z localhost:61234'))
  assert.ok(shown('/home/you/try', '/tmp/reader/try'))
  assert.ok(!shown('a.c', 'abc'))
})

test('steps come in the order of the page, and other languages are left out', () => {
  const page = [
    block('yaml', 'a: 1'),
    block('sh server', 'run'),
    '<!-- follow: ctrl-c server -->',
    block('sh', 'ask'),
    block('sh example', 'ask <name>'),
    block('text', 'answer'),
    block('text server', 'log'),
  ].join('\n')
  assert.deepEqual(
    stepsOf(page).map(({ what, terminal }) => `${what} ${terminal}`),
    ['type server', 'ctrl-c server', 'type main', 'expect main', 'expect server'],
  )
})
