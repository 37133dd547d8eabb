import assert from 'node:assert/strict'
import { test } from 'node:test'
import { devCommand, serverCommand } from './commands.ts'
import type { FlagTable } from './flag.ts'
import { helpText } from './help.ts'
import { serverFlags } from './options.ts'

test('help: starts with all usages, followed by one section per topic', () => {
  const lines = helpText(serverCommand).split('\n')
  const usage = lines.indexOf('Usage:')
  assert.deepEqual(lines.slice(usage, usage + 4), [
    'Usage:',
    '  tidings [flags]',
    '  tidings dev [--mirror] [--data-dir path] [flags]',
    '  tidings history verify|purge|recover [flags]',
  ])
  assert.deepEqual(
    lines.filter((line) => line.endsWith(' flags:')),
    [
      'Serving flags:',
      'Access flags:',
      'Limits flags:',
      'Audit flags:',
      'Traces flags:',
      'Storage flags:',
      'History flags:',
      'API flags:',
      'Clusters flags:',
      'Health and shutdown flags:',
      'Logging flags:',
      'Misc flags:',
    ],
  )
})

test('help: shows the value, the meaning and the default of a flag', () => {
  const text = helpText(serverCommand)
  assert.ok(
    text.includes(
      '      --request-timeout duration\n' +
        '                Maximum duration of a request, after which it fails with a timeout. It does not\n' +
        '                apply to watches. (default 1m0s)\n',
    ),
  )
  assert.ok(text.includes('\n  -v, --v int\n'))
  assert.ok(text.includes('\n  -h, --help\n'))
})

test('help: the first screen has the options of dev', () => {
  for (const command of [serverCommand, devCommand]) {
    const screen = helpText<never>(command as never, 80)
      .split('\n')
      .slice(0, 24)
      .join('\n')
    for (const name of ['mirror', 'context', 'kubeconfig', 'data-dir', 'etcd-binary']) {
      assert.ok(screen.includes(`--${name}`), `${command.name} --help: ${name}`)
    }
  }
})

test('help: is not wider than the terminal or 100 columns', () => {
  const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length))
  assert.ok(widest(helpText(serverCommand)) <= 100)
  assert.ok(widest(helpText(serverCommand, 300)) <= 100)
  assert.ok(widest(helpText(serverCommand, 72)) <= 72)
})

test('help: lists the flags of dev and omits those that dev sets itself', () => {
  const text = helpText(devCommand)
  assert.ok(text.includes('  tidings dev [--mirror] [--data-dir path] [flags]\n'))
  assert.ok(text.includes('--etcd-binary path'))
  assert.ok(!text.includes('--etcd-servers urls'))
})

test('every flag has a unique name and letter, and a help text', () => {
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

test('a table with a missing row or a row of the wrong type does not compile', () => {
  // @ts-expect-error the row for b is missing
  const missing: FlagTable<{ a: number; b: number }> = { a: serverFlags.securePort }
  // @ts-expect-error a flag with a text value cannot set a number
  const wrong: FlagTable<{ a: number }> = { a: serverFlags.bindAddress }
  assert.ok(missing && wrong)
})
