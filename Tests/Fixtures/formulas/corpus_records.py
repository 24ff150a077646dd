"""Fields and records of the corpus."""

FIELDS = []


def field(name, type, **kw):
    FIELDS.append(dict(name=name, type=type, **kw))


field("Id", "Id")
for n in ("Name", "FirstName__c", "LastName__c", "Street__c", "City__c", "State__c", "Zip__c", "Country__c",
          "Code__c", "Text_A__c", "Text_B__c", "Num_Text__c", "Date_Text__c", "Datetime_Text__c", "Time_Text__c"):
    field(n, "Text", length=255)
field("Email__c", "Email"), field("Phone__c", "Phone"), field("Website__c", "Url")
for n, p, s in (("Amount__c", 18, 2), ("Budget__c", 18, 2), ("Unit_Price__c", 18, 4), ("Revenue__c", 18, 0)):
    field(n, "Currency", precision=p, scale=s)
for n, p, s in (("Quantity__c", 18, 0), ("Num_A__c", 18, 6), ("Num_B__c", 18, 6), ("Employees__c", 8, 0),
                ("Lead_Score__c", 5, 0), ("Months__c", 5, 1), ("Pos__c", 5, 0), ("Big__c", 18, 0)):
    field(n, "Number", precision=p, scale=s)
for n, p, s in (("Discount__c", 5, 2), ("Probability__c", 3, 0), ("Rate__c", 8, 4)):
    field(n, "Percent", precision=p, scale=s)
for n in ("Close_Date__c", "Start_Date__c", "End_Date__c", "Birthdate__c"):
    field(n, "Date")
for n in ("CreatedDate", "Opened__c", "Closed__c"):
    field(n, "DateTime")
for n in ("Open_Time__c", "Shut_Time__c"):
    field(n, "Time")
for n in ("Active__c", "VIP__c", "Opt_Out__c"):
    field(n, "Checkbox")
STAGES = ["Prospecting", "Qualification", "Proposal", "Negotiation", "Closed Won", "Closed Lost"]
RATINGS = ["Hot", "Warm", "Cold"]
PRIORITIES = ["Low", "Medium", "High", "Critical"]
TYPES = ["New Business", "Renewal", "Add-On", "Partner's \"Deal\""]
PRODUCTS = ["A", "AI", "Cloud", "Cloud Plus", "Data", "Data Lake"]
INTERESTS = ["Art", "Golf", "Golf Carts", "Tennis"]
for n, v in (("Stage__c", STAGES), ("Rating__c", RATINGS), ("Priority__c", PRIORITIES), ("Type__c", TYPES)):
    field(n, "Picklist", values=v)
field("Products__c", "MultiselectPicklist", values=PRODUCTS)
field("Interests__c", "MultiselectPicklist", values=INTERESTS)
field("AccountId", "Reference", to="Account", relationship="Account")
field("OwnerId", "Reference", to="User", relationship="Owner")
field("Contact__c", "Reference", to="Contact", relationship="Contact__r")
for n, t, kw in (
        ("Account.Name", "Text", {}), ("Account.Industry", "Picklist", {"values": ["Technology", "Banking", "Retail", "Energy"]}),
        ("Account.Rating", "Picklist", {"values": RATINGS}), ("Account.BillingState", "Text", {}),
        ("Account.BillingCountry", "Text", {}), ("Account.AnnualRevenue", "Currency", {"scale": 0}),
        ("Account.NumberOfEmployees", "Number", {"scale": 0}), ("Account.Discount__c", "Percent", {"scale": 2}),
        ("Account.CreatedDate", "DateTime", {}), ("Account.Renewal__c", "Date", {}), ("Account.Active__c", "Checkbox", {}),
        ("Account.ParentId", "Reference", {"to": "Account", "relationship": "Parent"}),
        ("Account.Parent.Name", "Text", {}), ("Account.Parent.AnnualRevenue", "Currency", {"scale": 0}),
        ("Owner.Name", "Text", {}), ("Owner.Email", "Email", {}), ("Owner.IsActive", "Checkbox", {}),
        ("Owner.ManagerId", "Reference", {"to": "User", "relationship": "Manager"}),
        ("Owner.Manager.Name", "Text", {}), ("Owner.Manager.Email", "Email", {}),
        ("Contact__r.FirstName", "Text", {}), ("Contact__r.LastName", "Text", {}), ("Contact__r.Email", "Email", {}),
        ("Contact__r.Birthdate", "Date", {}), ("Contact__r.MailingState", "Text", {})):
    field(n, t, path=n.split("."), **kw)

BASE = {
    "Name": "Acme Renewal 2024", "FirstName__c": "Ada", "LastName__c": "Lovelace", "Street__c": "1 Main St",
    "City__c": "San Francisco", "State__c": "CA", "Zip__c": "94105", "Country__c": "USA", "Code__c": "AB-1234-X",
    "Text_A__c": "Alpha", "Text_B__c": "Beta", "Num_Text__c": "42.5", "Date_Text__c": "2024-03-15",
    "Datetime_Text__c": "2024-03-15 13:45:10", "Time_Text__c": "17:30:45.125", "Email__c": "ada@example.com",
    "Phone__c": "(415) 555-1212", "Website__c": "https://www.example.com/a?b=1", "Amount__c": "12500.00",
    "Budget__c": "10000.00", "Unit_Price__c": "19.9900", "Revenue__c": "1500000", "Quantity__c": "12",
    "Num_A__c": "7.250000", "Num_B__c": "2.000000", "Employees__c": "120", "Lead_Score__c": "55", "Months__c": "6",
    "Pos__c": "2", "Big__c": "1000", "Discount__c": "10.00", "Probability__c": "60", "Rate__c": "5.2500",
    "Close_Date__c": "2024-03-15", "Start_Date__c": "2024-01-10", "End_Date__c": "2024-06-30",
    "Birthdate__c": "1985-07-04", "CreatedDate": "2024-01-05T09:30:00Z", "Opened__c": "2024-02-26T10:00:00Z",
    "Closed__c": "2024-02-28T16:30:00Z", "Open_Time__c": "09:00:00.000", "Shut_Time__c": "17:30:00.000",
    "Active__c": True, "VIP__c": False, "Opt_Out__c": False, "Stage__c": "Proposal", "Rating__c": "Warm",
    "Priority__c": "Medium", "Type__c": "Renewal", "Products__c": "Cloud;Data", "Interests__c": "Golf",
    "AccountId": "001000000000001AAA", "OwnerId": "005000000000001AAA", "Contact__c": "003000000000001AAA",
    "Account.Name": "Acme Corp", "Account.Industry": "Technology", "Account.Rating": "Hot",
    "Account.BillingState": "NY", "Account.BillingCountry": "USA", "Account.AnnualRevenue": "5000000",
    "Account.NumberOfEmployees": "250", "Account.Discount__c": "7.50", "Account.CreatedDate": "2020-02-29T23:59:59Z",
    "Account.Renewal__c": "2024-12-31", "Account.Active__c": True, "Account.ParentId": "001000000000002AAA",
    "Account.Parent.Name": "Acme Holding", "Account.Parent.AnnualRevenue": "90000000", "Owner.Name": "Sam Seller",
    "Owner.Email": "sam@example.com", "Owner.IsActive": True, "Owner.ManagerId": "005000000000002AAA",
    "Owner.Manager.Name": "Mia Manager", "Owner.Manager.Email": "mia@example.com", "Contact__r.FirstName": "Grace",
    "Contact__r.LastName": "Hopper", "Contact__r.Email": "grace@example.com", "Contact__r.Birthdate": "1996-02-29",
    "Contact__r.MailingState": "tx",
}
RECORDS = []


def rec(case, **over):
    r = {"Id": "a00%012dAAA" % (len(RECORDS) + 1), "_case": case}
    for k, v in BASE.items():
        r[k] = v
    for k, v in over.items():
        k = k.replace("Account_", "Account.", 1) if k.startswith("Account_") else k
        k = k.replace("Owner_", "Owner.", 1) if k.startswith("Owner_") else k
        k = k.replace("Contact_r_", "Contact__r.", 1) if k.startswith("Contact_r_") else k
        k = k.replace(".Parent_", ".Parent.").replace(".Manager_", ".Manager.")
        assert k in BASE, k
        r[k] = v
    RECORDS.append(r)


def none(prefix):
    return {k: (False if isinstance(v, bool) else None) for k, v in BASE.items() if k.startswith(prefix)}


def blank(*names):
    return {n: None for n in names}


def rec2(case, over):
    rec(case)
    RECORDS[-1].update(over)


NUMS = [f["name"] for f in FIELDS if f["type"] in ("Number", "Currency", "Percent") and "." not in f["name"]]
TEXTS = [f["name"] for f in FIELDS if f["type"] in ("Text", "Email", "Phone", "Url") and "." not in f["name"]]
DATES = [f["name"] for f in FIELDS if f["type"] in ("Date", "DateTime", "Time") and "." not in f["name"]]

rec("typical")
rec2("all null", {k: (False if isinstance(v, bool) else None) for k, v in BASE.items()})
rec2("numbers null", {k: None for k in NUMS})
rec2("numbers zero", {k: "0" for k in NUMS})
rec2("numbers negative", {k: str(-abs(float(BASE[k]))) if k not in ("Quantity__c", "Employees__c", "Lead_Score__c", "Big__c", "Revenue__c", "Pos__c", "Months__c", "Probability__c") else "-" + BASE[k] for k in NUMS})
rec("half positive", Num_A__c="2.5", Num_B__c="0.125", Amount__c="2.5", Budget__c="1.005", Unit_Price__c="0.1250", Discount__c="0.5", Rate__c="12.345", Quantity__c="3", Months__c="1")
rec("half negative", Num_A__c="-2.5", Num_B__c="-0.125", Amount__c="-2.5", Budget__c="-1.005", Unit_Price__c="-0.1250", Discount__c="-0.5", Rate__c="-12.345", Quantity__c="-3", Months__c="-1")
rec("thirds", Num_A__c="1", Num_B__c="3", Amount__c="100", Budget__c="3", Quantity__c="7", Unit_Price__c="0.3333", Months__c="1.5", Employees__c="3")
rec("large numbers", Amount__c="9999999999999999.99", Budget__c="0.01", Big__c="999999999999999999", Quantity__c="999999999999999999", Num_A__c="999999999999.999999", Num_B__c="0.000001", Revenue__c="999999999999999999", Unit_Price__c="99999999999999.9999", Employees__c="99999999", Lead_Score__c="99999")
rec("small numbers", Amount__c="0.01", Budget__c="0.03", Num_A__c="0.000001", Num_B__c="-0.000001", Unit_Price__c="0.0001", Rate__c="0.0001", Discount__c="0.01", Quantity__c="1", Big__c="1")
rec("percent edges full", Discount__c="100", Probability__c="100", Rate__c="100", Amount__c="50000", Lead_Score__c="100")
rec("percent edges over", Discount__c="999.99", Probability__c="0", Rate__c="-100", Amount__c="100000.01", Lead_Score__c="0")
rec("tier edges", Amount__c="10000", Discount__c="15", Probability__c="50", Lead_Score__c="50", Quantity__c="100", Employees__c="100", Revenue__c="1000000")
rec("tier edges above", Amount__c="10000.01", Discount__c="15.01", Probability__c="51", Lead_Score__c="51", Quantity__c="101", Employees__c="101", Revenue__c="1000001")
rec2("texts null", {k: None for k in TEXTS})
rec2("texts empty", {k: "" for k in TEXTS})
rec2("texts one space", {k: " " for k in TEXTS})
rec("spaces around", Name="  Acme  ", FirstName__c=" Ada ", LastName__c=" Lovelace", City__c="Paris ", State__c="CA ", Code__c="  AB-1 ", Text_A__c=" x", Text_B__c="x", Num_Text__c=" 12 ", Date_Text__c=" 2024-03-15", Email__c=" a@b.co ")
rec("tabs and no-break spaces", Name="\tAcme\t", FirstName__c="\u00a0Ada\u00a0", LastName__c="Line\nBreak\n", Text_A__c="\t x \t", Text_B__c="\u2003x", Num_Text__c="\t7", Code__c="A\tB")
rec("accents", Name="Éclair Ñandú", FirstName__c="Zoë", LastName__c="Müller-Straße", City__c="Ærøskøbing", Text_A__c="é", Text_B__c="e\u0301", Code__c="ÄÖ-12", Country__c="Österreich")
rec("astral", Name="😀 Party 🎉🎉", FirstName__c="𝒜da", LastName__c="👩‍👩‍👧", Text_A__c="a😀b", Text_B__c="😀", Code__c="😀-9", City__c="北京", Pos__c="3")
rec("case differs", Text_A__c="Beta", Text_B__c="beta", State__c="ca", Country__c="usa", Code__c="ab-1234-x", Email__c="ADA@EXAMPLE.COM", Name="ACME renewal", Contact_r_MailingState="TX")
rec("quotes and wildcards", Name="O'Brien \"Bob\" \\ 100%", Text_A__c="50%_off", Text_B__c="%", Code__c="_", FirstName__c="D'Arcy", LastName__c="a&b<c>", City__c="x", Type__c=TYPES[3], Street__c="5'7\"")
rec("same texts", Text_A__c="abcabc", Text_B__c="abc", Pos__c="4", Code__c="abc-abc-abc", Num_Text__c="007")
rec("number texts 1", Num_Text__c="1,000", Date_Text__c="2023-02-30", Datetime_Text__c="2024-02-30 10:00:00", Time_Text__c="24:00:00.000", Pos__c="0")
rec("number texts 2", Num_Text__c="1e3", Date_Text__c="2024-3-5", Datetime_Text__c="2024-03-15T13:45:10Z", Time_Text__c="7:05:00", Pos__c="-1")
rec("number texts 3", Num_Text__c="-0.50", Date_Text__c="15/03/2024", Datetime_Text__c="2024-03-15", Time_Text__c="noon", Pos__c="99")
rec("number texts 4", Num_Text__c="12abc", Date_Text__c="0000-01-01", Datetime_Text__c="", Time_Text__c="23:59:59.999", Pos__c="1")
rec("leap day", Close_Date__c="2024-02-29", Start_Date__c="2024-02-29", End_Date__c="2028-02-29", Birthdate__c="2000-02-29", CreatedDate="2024-02-29T00:00:00Z", Opened__c="2024-02-29T00:00:00Z", Closed__c="2024-02-29T23:59:59Z", Months__c="12")
rec("february end, no leap", Close_Date__c="2023-02-28", Start_Date__c="2023-01-31", End_Date__c="2023-02-28", Birthdate__c="1900-02-28", Months__c="1", Account_Renewal__c="2023-02-28")
rec("month ends", Close_Date__c="2024-03-31", Start_Date__c="2024-08-31", End_Date__c="2024-11-30", Birthdate__c="1999-12-31", Months__c="-1", Account_Renewal__c="2024-04-30")
rec("day 30", Close_Date__c="2024-01-30", Start_Date__c="2023-01-30", End_Date__c="2023-12-30", Months__c="1", Birthdate__c="1970-01-01")
rec("year ends", Close_Date__c="2023-12-31", Start_Date__c="2024-01-01", End_Date__c="2024-12-31", Birthdate__c="2023-12-31", CreatedDate="2023-12-31T23:59:59Z", Opened__c="2023-12-31T23:59:59Z", Closed__c="2024-01-01T00:00:00Z", Months__c="14")
rec("weekend", Close_Date__c="2024-03-02", Start_Date__c="2024-03-03", End_Date__c="2024-03-09", Opened__c="2024-03-02T12:00:00Z", Closed__c="2024-03-03T12:00:01Z", Birthdate__c="1969-12-31")
rec("friday to monday", Close_Date__c="2024-03-01", Start_Date__c="2024-03-01", End_Date__c="2024-03-04", Opened__c="2024-03-01T17:00:00Z", Closed__c="2024-03-04T09:00:00Z", Birthdate__c="1985-03-01")
rec("today", Close_Date__c="2024-02-29", Start_Date__c="2024-02-28", End_Date__c="2024-03-01", Opened__c="2024-02-29T23:30:15Z", Closed__c="2024-02-29T23:30:16Z", Birthdate__c="1984-02-29", CreatedDate="2024-02-29T23:30:15Z", Account_Renewal__c="2024-02-29")
rec("old and far dates", Close_Date__c="4000-12-31", Start_Date__c="1700-01-01", End_Date__c="2999-12-31", Birthdate__c="1899-12-31", Opened__c="1969-12-31T23:59:59Z", Closed__c="2038-01-19T03:14:08Z", Months__c="999")
rec("end before start", Start_Date__c="2024-05-01", End_Date__c="2024-04-01", Opened__c="2024-05-01T12:00:00Z", Closed__c="2024-05-01T10:59:59Z", Open_Time__c="22:00:00.000", Shut_Time__c="06:00:00.500")
rec2("dates null", {k: None for k in DATES})
rec("midnight times", Open_Time__c="00:00:00.000", Shut_Time__c="23:59:59.999", Opened__c="2024-02-10T23:59:59Z", Closed__c="2024-02-11T00:00:00Z", CreatedDate="2024-02-10T23:59:59Z")
rec2("relations missing", dict(none("Account"), **dict(none("Owner"), **none("Contact__"))))
rec2("second level missing", dict(none("Account.Parent"), **none("Owner.Manager")))
rec2("related fields null", {k: (False if isinstance(BASE[k], bool) else None) for k in BASE if "." in k})
rec2("picklists null", blank("Stage__c", "Rating__c", "Priority__c", "Type__c", "Products__c", "Interests__c", "Account.Industry", "Account.Rating"))
rec("picks 1", Stage__c="Closed Won", Rating__c="Hot", Priority__c="Critical", Type__c="New Business", Products__c="A", Interests__c="Golf Carts", Account_Industry="Banking", Account_Rating="Cold", VIP__c=True)
rec("picks 2", Stage__c="Closed Lost", Rating__c="Cold", Priority__c="Low", Type__c="Add-On", Products__c="AI;Cloud Plus", Interests__c="Art;Golf Carts;Tennis", Account_Industry="Retail", Account_Rating="Warm", Active__c=False)
rec("picks 3", Stage__c="Negotiation", Priority__c="High", Products__c=";".join(PRODUCTS), Interests__c=";".join(INTERESTS), Account_Industry="Energy", Opt_Out__c=True, VIP__c=True)
rec("picks 4", Stage__c="Prospecting", Products__c="Data Lake", Interests__c="Art;Tennis", Active__c=False, Opt_Out__c=True, Account_Active__c=False, Owner_IsActive=False)
rec("picks 5", Stage__c="Qualification", Rating__c=None, Priority__c="High", Products__c="A;Cloud", Interests__c=None, VIP__c=True)
rec("number texts 5", Num_Text__c="+5", Date_Text__c="2024-03-15 10:00", Datetime_Text__c="2024-3-5 7:05:09", Time_Text__c="7:05:00.000")
rec("number texts 6", Num_Text__c=".5", Date_Text__c="2024-13-01", Datetime_Text__c="2023-02-29 00:00:00", Time_Text__c="00:00:00.000")
rec("quarter edges", Close_Date__c="2024-04-01", Start_Date__c="2024-09-30", End_Date__c="2024-10-01", Birthdate__c="2004-02-28", Opened__c="2024-03-31T23:59:59Z", Closed__c="2024-04-02T01:59:59Z", CreatedDate="2024-03-31T23:59:59Z")
