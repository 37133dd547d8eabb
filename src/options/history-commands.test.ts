import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseHistory } from './history-commands.ts'

const archive = ['--history=s3://my-bucket/tidings/', '--etcd-servers=https://etcd-0:2379']

function mistakesOf(...args: readonly string[]): string {
  const parsed = parseHistory(args)
  assert.equal(parsed.kind, 'mistakes', JSON.stringify(parsed))
  return parsed.mistakes.join('\n')
}

function helpOf(...args: readonly string[]): string {
  const parsed = parseHistory(args)
  assert.equal(parsed.kind, 'help')
  return parsed.text
}

test('history commands: all know the place, etcd and the log', () => {
  for (const verb of ['verify', 'recover']) {
    assert.deepEqual(parseHistory([verb, ...archive, '-v4', '--etcd-prefix=/events']), {
      kind: 'run',
      options: {
        verb,
        options: {
          history: 's3://my-bucket/tidings',
          historyCacheDir: undefined,
          etcdServers: ['https://etcd-0:2379'],
          etcdCaFile: undefined,
          etcdCertFile: undefined,
          etcdKeyFile: undefined,
          etcdPrefix: '/events',
          loggingFormat: 'text',
          verbosity: 4,
        },
      },
    })
  }
})

test('history commands: purge says what is removed', () => {
  const purge = (...args: readonly string[]) => {
    const parsed = parseHistory([
      'purge',
      ...archive,
      '--cluster=prod',
      '--namespace=shop',
      ...args,
    ])
    assert.ok(parsed.kind === 'run' && parsed.options.verb === 'purge')
    const { cluster, namespace, beforeMs } = parsed.options.options
    return { cluster, namespace, beforeMs }
  }
  const what = { cluster: 'prod', namespace: 'shop' }
  assert.deepEqual(purge(), { ...what, beforeMs: undefined })
  const day = Date.UTC(2026, 0, 31)
  assert.deepEqual(purge('--before=2026-01-31'), { ...what, beforeMs: day })
  assert.deepEqual(purge('--before', '2026-01-31T01:00:00+01:00'), { ...what, beforeMs: day })
})

test('history commands: what they need is required', () => {
  assert.equal(
    mistakesOf('purge'),
    [
      '--cluster is required: write --cluster=prod',
      '--namespace is required: write --namespace=shop',
      '--history is required: write --history=s3://my-bucket/tidings',
      '--etcd-servers is required: write --etcd-servers=http://127.0.0.1:2379',
    ].join('\n'),
  )
  assert.match(mistakesOf('verify', ...archive, '--etcd-certfile=a'), /needs --etcd-keyfile/)
  assert.match(mistakesOf('verify', ...archive, '--cluster=a'), /^unknown flag --cluster/)
  assert.match(mistakesOf('purge', ...archive, '--cluster=A'), /"A" is not the name of a cluster/)
  for (const time of ['yesterday', '2026-02-31T00:00:00', '2026', '2026-13-01']) {
    const mistake = mistakesOf('purge', ...archive, `--before=${time}`)
    assert.match(mistake, /--before: ".*" is not a time: write one such as 2026-01-31T18:00:00Z/)
  }
})

test('history commands: without one of them, or with another, the others are named', () => {
  assert.equal(mistakesOf(), 'a command is missing: write verify, purge or recover')
  assert.match(
    mistakesOf('verfy'),
    /^unexpected argument "verfy": .*"tidings history verify", "tid/,
  )
})

test('history commands: help has all of them, and each has its own', () => {
  const all = helpOf('--help')
  for (const verb of ['verify', 'purge', 'recover']) {
    assert.ok(all.includes(`\n  tidings history ${verb} --`), verb)
    assert.ok(helpOf(verb, '--help').includes('--history url\n'))
  }
  assert.ok(helpOf('purge', '-h').includes('\nPurge flags:\n'))
})
