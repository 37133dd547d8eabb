import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { serverCommand } from './commands.ts'
import { parseFlags } from './parse.ts'

const parse = (...args: readonly string[]) =>
  parseFlags(serverCommand, ['--etcd-servers=http://127.0.0.1:2379', ...args])

function mistakesOf(...args: readonly string[]): string {
  const result = parse(...args)
  return result.kind === 'mistakes' ? result.mistakes.join('\n') : ''
}

describe('authorization flags', () => {
  test('default to RBAC, no open paths, and a longer cache for "allowed" than for "denied"', () => {
    const result = parse()
    assert.ok(result.kind === 'run')
    assert.deepEqual(result.options.authorizationModes, ['RBAC'])
    assert.deepEqual(result.options.authorizationAlwaysAllowPaths, [])
    assert.equal(result.options.authorizationWebhookAuthorizedTtlMs, 300_000)
    assert.equal(result.options.authorizationWebhookUnauthorizedTtlMs, 30_000)
  })

  test('keep modes in the order of the command line', () => {
    const file = '--authorization-webhook-config-file=hook.yaml'
    const result = parse('--authorization-mode=Webhook,RBAC', file)
    assert.ok(result.kind === 'run')
    assert.deepEqual(result.options.authorizationModes, ['Webhook', 'RBAC'])
  })

  test('report every mistake', () => {
    assert.match(
      mistakesOf('--authorization-mode=rbac'),
      /"rbac" is not known: write RBAC, Webhook/,
    )
    assert.match(mistakesOf('--authorization-mode=RBAC,RBAC'), /listed twice/)
    assert.match(
      mistakesOf('--authorization-mode=Webhook'),
      /needs --authorization-webhook-config-file/,
    )
    assert.match(
      mistakesOf('--authorization-webhook-config-file=x'),
      /has no effect without Webhook/,
    )
    assert.match(
      mistakesOf('--authorization-mode=AlwaysAllow', '--rbac-policy-path=x'),
      /has no effect without RBAC/,
    )
    assert.match(mistakesOf('--authorization-always-allow-paths=livez'), /"livez" is not a path/)
    assert.match(mistakesOf('--authorization-always-allow-paths=/a*b'), /allowed only at the end/)
  })
})
