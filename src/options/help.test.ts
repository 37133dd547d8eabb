import assert from 'node:assert/strict'
import { test } from 'node:test'
import { devCommand, serverCommand } from './commands.ts'
import type { FlagTable } from './flag.ts'
import { helpText } from './help.ts'
import { serverFlags } from './options.ts'

test('help: opens with both usages, then one section a topic', () => {
  const lines = helpText(serverCommand).split('\n')
  const usage = lines.indexOf('Usage:')
  assert.deepEqual(lines.slice(usage, usage + 3), [
    'Usage:',
    '  tidings [flags]',
    '  tidings dev [flags]',
  ])
  assert.deepEqual(
    lines.filter((line) => line.endsWith(' flags:')),
    [
      'Serving flags:',
      'Access flags:',
      'Limits flags:',
      'Audit flags:',
      'Storage flags:',
      'API flags:',
      'Health and shutdown flags:',
      'Logging flags:',
      'Misc flags:',
    ],
  )
})

test('help: a flag shows its value, its meaning and its default', () => {
  const text = helpText(serverCommand)
  assert.ok(
    text.includes(
      '      --request-timeout duration\n' +
        '                How long a request may take before it is answered with a timeout. Watches are not\n' +
        '                bound by it. (default 1m0s)\n',
    ),
  )
  assert.ok(text.includes('\n  -v, --v int\n'))
  assert.ok(text.includes('\n  -h, --help\n'))
})

test('help: stays inside the terminal, and inside 100 columns on a wide one', () => {
  const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length))
  assert.ok(widest(helpText(serverCommand)) <= 100)
  assert.ok(widest(helpText(serverCommand, 300)) <= 100)
  assert.ok(widest(helpText(serverCommand, 72)) <= 72)
})

test('help: dev names its own flag and not those it decides', () => {
  const text = helpText(devCommand)
  assert.ok(text.includes('  tidings dev [flags]\n'))
  assert.ok(text.includes('--etcd-binary path'))
  assert.ok(!text.includes('--etcd-servers urls'))
})

test('flags: no name or letter is used twice, and every row says what it means', () => {
  const flags = Object.values(devCommand.flags)
  const names = [...flags.map((flag) => flag.name), 'help', 'version']
  assert.equal(new Set(names).size, names.length)
  const letters = [...flags.flatMap((flag) => flag.short ?? []), 'h']
  assert.equal(new Set(letters).size, letters.length)
  for (const flag of flags) {
    assert.match(flag.name, /^[a-z0-9]+(-[a-z0-9]+)*$/)
    assert.match(flag.help, /^[A-Z].*\.$/)
  }
})

test('flags: a missing row and a row of the wrong type do not compile', () => {
  // @ts-expect-error the row for b is missing
  const missing: FlagTable<{ a: number; b: number }> = { a: serverFlags.securePort }
  // @ts-expect-error a flag of text cannot fill a number
  const wrong: FlagTable<{ a: number }> = { a: serverFlags.bindAddress }
  assert.ok(missing && wrong)
})
