import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RetentionPolicy, type RuleSelector } from '../policy.ts'
import { effectiveRules, selectionText } from './effective-rules.ts'

/** The names and texts of the rules that can apply; the rules are called a, b and so on. */
function shown(
  selectors: readonly RuleSelector[],
  cluster: string,
  namespace?: string,
): readonly string[] {
  const rules = selectors.map((selector, at) => ({
    name: String.fromCharCode(97 + at),
    selector,
    lifetime: 1_000,
  }))
  const policy = new RetentionPolicy({ rules, lifetime: 2_000 })
  return effectiveRules(policy, cluster, namespace).map((rule) =>
    `${rule.name} ${selectionText(rule, namespace)}`.trim(),
  )
}

test('effective rules: those of other clusters and namespaces are left out', () => {
  const selectors = [
    { cluster: ['prod'], kind: ['Pod'] },
    { namespace: ['shop', 'cart'], type: ['Warning'] },
    { reason: ['Pulling', 'Pulled'], controller: ['kubelet'] },
  ]
  assert.deepEqual(shown(selectors, 'prod', 'shop'), [
    'a kind=Pod',
    'b Warning',
    'c reason=Pulling|Pulled controller=kubelet',
    'default',
  ])
  assert.deepEqual(shown(selectors, 'test', 'web'), [
    'c reason=Pulling|Pulled controller=kubelet',
    'default',
  ])
  assert.deepEqual(shown(selectors, 'test'), [
    'b namespace=shop|cart Warning',
    'c reason=Pulling|Pulled controller=kubelet',
    'default',
  ])
})

test('effective rules: nothing follows a rule that matches everything there', () => {
  const selectors = [{ namespace: ['shop'] }, { type: ['Warning'] }]
  assert.deepEqual(shown(selectors, 'prod', 'shop'), ['a'])
  assert.deepEqual(shown(selectors, 'prod'), ['a namespace=shop', 'b Warning', 'default'])
  assert.deepEqual(shown([{ cluster: ['prod'] }, {}], 'prod'), ['a'])
})

test('effective rules: Normal and Warning leave events of another type, or of none, to the default', () => {
  assert.deepEqual(shown([{ type: ['Warning'] }, { type: ['Normal'] }], 'c', 'n'), [
    'a Warning',
    'b Normal',
    'default',
  ])
})
