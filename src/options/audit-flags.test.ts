import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { serverCommand } from './commands.ts'
import { parseFlags } from './parse.ts'

const etcd = '--etcd-servers=http://127.0.0.1:2379'

function mistakesOf(...flags: readonly string[]): readonly string[] {
  const result = parseFlags(serverCommand, [etcd, ...flags])
  return result.kind === 'mistakes' ? result.mistakes : []
}

describe('audit flags', () => {
  test('require a log path with a policy and a policy with a log path', () => {
    assert.match(mistakesOf('--audit-policy-file=p.yaml').join(), /needs --audit-log-path/)
    assert.match(mistakesOf('--audit-log-path=-').join(), /needs --audit-policy-file/)
    assert.deepEqual(mistakesOf('--audit-policy-file=p.yaml', '--audit-log-path=-'), [])
  })

  test('reject unsupported formats and modes with a reason', () => {
    assert.match(mistakesOf('--audit-log-format=legacy').join(), /refused \(it omits/)
    assert.match(mistakesOf('--audit-log-mode=blocking-strict').join(), /refused \(a full disk/)
  })

  test('replace a maximum size of 0 by the default of kube-apiserver', () => {
    const result = parseFlags(serverCommand, [etcd, '--audit-log-maxsize=0'])
    assert.equal(result.kind === 'run' && result.options.auditLogMaxMegabytes, 100)
  })
})
