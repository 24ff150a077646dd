select
  {{ record_id() }} as contact_id,
  {{ full_name() }} as contact_name,
  accountid as account_id,
  email
from {{ source('salesforce', 'contacts') }}
