select
  id as opportunity_id,
  transaction_key,
  change_type,
  lower(field) as field,
  old_value,
  new_value,
  old_is_known,
  changed_at,
  changed_by as changed_by_id,
  changed_by_name
from {{ source('salesforce', 'opportunity_changes') }}
