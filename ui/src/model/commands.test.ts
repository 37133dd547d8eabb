import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { curlCommand, kubectlCommand, shellWord } from './commands.ts'

test('prints a kubectl command for one namespace or all', () => {
  const selector = 'mentions=Pod/web-0'
  assert.equal(
    kubectlCommand({ cluster: '', namespace: 'shop', selector }),
    'kubectl get events -n shop --field-selector mentions=Pod/web-0',
  )
  assert.equal(
    kubectlCommand({ cluster: '', namespace: '', selector: '' }),
    'kubectl get events -A',
  )
})

test("replaces the path of the kubeconfig's server by that of the cluster", () => {
  const command = kubectlCommand({ cluster: 'eu', namespace: '', selector: '' })
  assert.match(
    command,
    /^kubectl --server "\$\(kubectl config view .* \| sed .*\)"\/clusters\/eu --tls-server-name ".*" get /,
  )
  assert.match(
    kubectlCommand({ cluster: "x'\n$(id)", namespace: '', selector: '' }),
    /\/clusters\/x'\\''%0A%24\(id\)' --tls/,
  )
})

test('passes curl the token in a variable, and only over TLS', () => {
  assert.equal(
    curlCommand('https://h:1/api/v1/events?a=b'),
    `curl --cacert ca.crt -H "Authorization: Bearer $TOKEN" 'https://h:1/api/v1/events?a=b'`,
  )
  assert.equal(curlCommand('http://h/x'), 'curl http://h/x')
})

test('quotes every value so that a shell reads it unchanged', () => {
  const texts = fc.array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.string({
        unit: fc.constantFrom(...`'"\`$(){}!\\ \n\r\t;&|<>*?#~=%a7\u202e\u009b`),
        maxLength: 20,
      }),
    ),
    { minLength: 100, maxLength: 100 },
  )
  fc.assert(
    fc.property(texts, (values) => {
      // `$( )` cannot represent these; selectors do not contain them.
      const wanted = values.map((value) => value.replaceAll('\0', '').replace(/\n+$/, ''))
      const script = `printf '%s\\0' ${wanted.map(shellWord).join(' ')}`
      const printed = execFileSync('sh', ['-c', script], { encoding: 'utf8' })
      assert.deepEqual(
        printed.split('\0').slice(0, -1),
        wanted.map((value) => value.toWellFormed()),
      )
    }),
    { numRuns: 20 },
  )
})

test('contains nothing that a terminal interprets', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (value) => {
      const command = kubectlCommand({ cluster: value, namespace: value, selector: value })
      assert.doesNotMatch(command, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    }),
  )
})

test('preserves a newline at the end of a selector', () => {
  const command = kubectlCommand({ cluster: '', namespace: 'a', selector: 'text=a\n' })
  assert.equal(
    command,
    `kubectl get events -n a --field-selector "$(printf 'text=a\\012,order=oldest')"`,
  )
})
