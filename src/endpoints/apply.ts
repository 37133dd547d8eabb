import { badRequest } from '../api/status.ts'
import { parseYaml } from '../codec/yaml.ts'
import { YamlSyntaxError } from '../codec/yaml-nodes.ts'
import { type AppliedConfig, readConfig } from '../registry/applied-config.ts'
import { applied } from '../registry/apply.ts'
import type { Apply } from '../registry/registry.ts'
import { orCreate } from './creation.ts'
import { admitOnce, type Endpoint, type EventApi, type OneEvent } from './event-api.ts'
import { eventResponse } from './event-response.ts'
import { negotiateObject } from './negotiate.ts'
import { afterReading, checkName, placedIn, receiveBytes } from './sent-event.ts'
import { withWarnings } from './warnings.ts'
import { readPatchOptions } from './write-options.ts'

/** PATCH …/namespaces/{namespace}/events/{name} with fields to apply: changes the event, or creates it. */
export function applyEvent(api: EventApi): Endpoint<OneEvent> {
  const { registry, forms, group } = api
  const { apiVersion } = group
  return async (request, { namespace, name }, caller) => {
    const form = forms.answer(negotiateObject(request))
    const body = await receiveBytes(request)
    const options = readPatchOptions(request.query, { isApply: true })
    const { fieldManager: manager, fieldValidation, isForced, isDryRun } = options
    const config = readBody(body, group)
    if (fieldValidation === 'Strict' && config.problems.length > 0) {
      throw badRequest(`error strict decoding YAML: ${config.problems.join(', ')}`)
    }
    await afterReading(body)

    const apply: Apply = (current, at) => {
      const { event, managedFields } = applied(current, config, {
        manager,
        apiVersion,
        isForced,
        at,
        served: registry.servedVersions,
      })
      checkName(event, name)
      return { event: placedIn(namespace, event), managedFields }
    }
    const admit = admitOnce(api, caller)
    const warnings = fieldValidation === 'Warn' ? config.problems : []
    const { event, isCreated } = await withWarnings(
      () => warnings,
      () =>
        orCreate(request, caller, (mayCreate) =>
          registry.apply({ namespace, name }, apply, { isDryRun, mayCreate, admit }),
        ),
    )
    return eventResponse(isCreated ? 201 : 200, form, event, warnings)
  }
}

/** YAML, or JSON, which is YAML too. Fails with a StatusError. */
function readBody(body: Buffer, group: EventApi['group']): AppliedConfig {
  const { value, duplicates, problems } = readDocument(body)
  const config = readConfig(value, group, duplicates)
  return { ...config, problems: [...problems, ...config.problems] }
}

function readDocument(body: Buffer): ReturnType<typeof parseYaml> {
  try {
    return parseYaml(body.toString())
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) throw error
    throw badRequest(`error decoding YAML: ${error.message}`, error)
  }
}
