import { badRequest } from '../../api/status.ts'
import { parseYaml } from '../../codec/yaml/yaml.ts'
import { YamlSyntaxError } from '../../lib/text/yaml-documents.ts'
import { recorded, recordedNow } from '../../lib/tracing/span.ts'
import { type AppliedConfig, readConfig } from '../../registry/apply/applied-config.ts'
import { applied } from '../../registry/apply/apply.ts'
import type { Apply } from '../../registry/registry.ts'
import { checkName, placedIn, receiveBytes, yieldIfLong } from '../request/event-body.ts'
import { negotiateObject } from '../request/negotiate.ts'
import { readPatchOptions } from '../request/write-options.ts'
import { eventResponse } from '../response/respond.ts'
import { withWarnings } from '../response/warnings.ts'
import { orCreate } from './create-on-update.ts'
import { type Endpoint, type EventApi, type OneEvent, writerOf } from './event-api.ts'

/**
 * PATCH …/namespaces/{namespace}/events/{name} as server-side apply, which may create the event.
 */
export function applyEvent(api: EventApi): Endpoint<OneEvent> {
  const { registry, encoders, group } = api
  const { apiVersion } = group
  return async (request, target, caller) => {
    const { cluster } = target
    const { namespace, name } = target.place
    const encoder = encoders.response(negotiateObject(request))
    const body = await receiveBytes(request)
    const options = readPatchOptions(request.query, { isApply: true })
    const { fieldManager: manager, fieldValidation, isForced, isDryRun } = options
    const config = recordedNow(request.span, 'decode', () => readBody(body, group))
    if (fieldValidation === 'Strict' && config.problems.length > 0) {
      throw badRequest(`error strict decoding patch: ${config.problems.join(', ')}`)
    }
    await yieldIfLong(body)

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
    const writer = writerOf(caller)
    const warnings = fieldValidation === 'Warn' ? config.problems : []
    const { event, isCreated } = await withWarnings(
      () => warnings,
      () =>
        orCreate(target, caller, (mayCreate) =>
          recorded(request.span, 'registry apply', (span) =>
            registry.apply({ cluster, namespace, name }, apply, {
              isDryRun,
              mayCreate,
              writer,
              span,
            }),
          ),
        ),
    )
    return eventResponse(isCreated ? 201 : 200, encoder, event, warnings)
  }
}

/** Reads YAML, of which JSON is a subset. Throws a StatusError. */
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
    throw badRequest(`error decoding patch: ${error.message}`, error)
  }
}
